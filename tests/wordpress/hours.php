<?php

// Runs the cases of data/fixtures/hours_cases.json through the plugin's rule: php -n hours.php < cases. No WordPress.

require __DIR__ . '/../../examples/wordpress-plugin/src/Hours.php';

use Profilesvc\Hours;

function sanitize_text_field(string $text): string
{
    return trim((string) preg_replace('/[\r\n\t ]+/', ' ', strip_tags($text)));
}

function sanitize_textarea_field(string $text): string
{
    return trim(strip_tags($text));
}

function __(string $text): string
{
    return $text;
}

foreach (['ProfileSync', 'ProfileForm'] as $class) {
    require __DIR__ . "/../../examples/wordpress-plugin/src/$class.php";
}

use Profilesvc\ProfileForm;
use Profilesvc\ProfileSync;

$results = [];
foreach (json_decode(stream_get_contents(STDIN), true) as ['day' => $day, 'text' => $text]) {
    $profile = ProfileForm::read(['hours' => [$day => $text]]);
    $sent    = ProfileSync::profile($profile)['regularHours']['periods'] ?? [];
    $entered = $profile['hours'][$day] ?? '';
    $asked   = array_values(ProfileForm::problems($profile, [], false));
    try {
        $direct    = is_string($text) ? Hours::periods($day, $text) : $sent;
        $results[] = ['periods' => $direct, 'sent' => $sent, 'shown' => $entered, 'long' => Hours::long($entered), 'asked' => $asked];
    } catch (InvalidArgumentException $error) {
        $results[] = ['problem' => $error->getMessage(), 'sent' => $sent, 'asked' => $asked];
    }
}
echo json_encode($results);
