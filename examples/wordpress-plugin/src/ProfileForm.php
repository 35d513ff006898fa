<?php

namespace Profilesvc;

require_once __DIR__ . '/Hours.php';

/**
 * The form of the profile: what it shows and what it accepts.
 */
final class ProfileForm
{
    /**
     * Return what was entered. The hours of a day are a text that Hours can read, unless problems() has one for the day.
     *
     * @param array<string, mixed> $form as it was posted, without slashes
     *
     * @return array<string, mixed>
     */
    public static function read(array $form): array
    {
        $hours = [];
        foreach (Hours::DAYS as $day) {
            $text = sanitize_text_field(Hours::text($form['hours'][$day] ?? ''));
            try {
                $text = Hours::shown($text);
            } catch (\InvalidArgumentException $error) {
                // It is shown again as it was entered.
            }
            if ('' !== $text) {
                $hours[$day] = $text;
            }
        }
        $profile = ['hours' => $hours];
        foreach (['title', 'phone', 'locality', 'area', 'postal_code', 'country'] as $name) {
            $profile[$name] = is_string($form[$name] ?? null) ? sanitize_text_field($form[$name]) : '';
        }
        $address            = is_string($form['address'] ?? null) ? sanitize_textarea_field($form['address']) : '';
        $profile['address'] = array_values(array_filter(array_map('trim', explode("\n", $address))));
        $profile['country'] = strtoupper($profile['country']);
        return $profile;
    }

    /**
     * Return what the owner has to correct or confirm, by day.
     *
     * @param array<string, mixed> $profile as it was read
     * @param array<string, mixed> $stored  the last profile; its long hours need no confirmation
     *
     * @return array<string, string>
     */
    public static function problems(array $profile, array $stored, bool $isConfirmed): array
    {
        $problems = [];
        foreach ($profile['hours'] as $day => $text) {
            try {
                $long = Hours::long($text);
            } catch (\InvalidArgumentException $error) {
                $problems[$day] = self::rule($error->getMessage());
                continue;
            }
            if ('' !== $long && !$isConfirmed && Hours::text($stored['hours'][$day] ?? '') !== $text) {
                /* translators: %s: a duration, such as 16:00 */
                $problems[$day] = sprintf(__('This is %s hours. Correct the times, or confirm them at the end of the form.', 'profilesvc'), $long);
            }
        }
        return $problems;
    }

    private static function rule(string $message): string
    {
        $rules = [
            Hours::RANGES  => __('Enter times such as 09:00-17:30, with commas between several.', 'profilesvc'),
            Hours::TIMES   => __('Enter times from 00:00 to 24:00.', 'profilesvc'),
            Hours::OVERLAP => __('These times overlap.', 'profilesvc'),
        ];
        return $rules[$message] ?? $message;
    }

    public static function dayName(string $day): string
    {
        return $GLOBALS['wp_locale']->get_weekday(((int) array_search($day, Hours::DAYS, true) + 1) % 7);
    }

    /**
     * @param array<string, mixed> $profile
     */
    public static function render(array $profile, bool $posts, bool $mayPost, bool $mustConfirm = false): void
    {
        SettingsPage::open('save');
        echo '<table class="form-table" role="presentation">';
        foreach (self::labels() as $name => $label) {
            $value = $profile[$name] ?? ('title' === $name ? get_bloginfo('name', 'raw') : '');
            self::row($name, $label, is_array($value) ? implode("\n", $value) : $value);
        }
        $hint = __('Times such as 09:00-17:30 or 9am-5pm, several with commas. Empty: closed. All day: 24 hours. 17:00-01:00 closes on the next day.', 'profilesvc');
        printf('<tr><th>%s</th><td><p class="description">%s</p></td></tr>', esc_html__('Opening hours', 'profilesvc'), esc_html($hint));
        foreach (Hours::DAYS as $day) {
            self::day($day, Hours::text($profile['hours'][$day] ?? ''));
        }
        if ($mustConfirm) {
            $text = __('Yes, the long hours are right.', 'profilesvc');
            printf('<tr><th></th><td><label><input type="checkbox" name="long_hours" value="1"> %s</label></td></tr>', esc_html($text));
        }
        if ($mayPost) {
            printf(
                '<tr><th>%s</th><td><label><input type="checkbox" name="posts" value="1" %s> %s</label></td></tr>',
                esc_html__('Posts', 'profilesvc'),
                checked($posts, true, false),
                esc_html__('Publish new posts of this site on the business listing', 'profilesvc')
            );
        } else {
            $text = __('Your plan does not include posts. After a change of the plan, connect again.', 'profilesvc');
            printf('<tr><th>%s</th><td>%s</td></tr>', esc_html__('Posts', 'profilesvc'), esc_html($text));
        }
        echo '</table>';
        submit_button(__('Save and send', 'profilesvc'));
        echo '</form>';
    }

    private static function row(string $name, string $label, string $value): void
    {
        $field = 'address' === $name
            ? '<textarea class="regular-text" rows="3" id="%1$s" name="%1$s">%2$s</textarea>'
            : '<input class="regular-text" type="text" id="%1$s" name="%1$s" value="%2$s">';
        $text  = 'address' === $name ? esc_textarea($value) : esc_attr($value);
        printf('<tr><th><label for="%s">%s</label></th><td>', esc_attr($name), esc_html($label));
        printf($field, esc_attr($name), $text); // both are escaped
        echo '</td></tr>';
    }

    private static function day(string $day, string $text): void
    {
        $id = 'hours-' . strtolower($day);
        printf('<tr><th><label for="%s">%s</label></th><td>', esc_attr($id), esc_html(self::dayName($day)));
        printf('<input class="regular-text" type="text" id="%s" name="hours[%s]" value="%s">', esc_attr($id), esc_attr($day), esc_attr($text));
        try {
            $times = Hours::overnight($text);
        } catch (\InvalidArgumentException $error) {
            $times = '';
        }
        if ('' !== $times) {
            /* translators: 1: times, such as 17:00-01:00, 2: day of the week */
            $hint = sprintf(__('%1$s closes on %2$s.', 'profilesvc'), $times, self::dayName(Hours::dayAfter($day)));
            printf(' <span class="description">%s</span>', esc_html($hint));
        }
        echo '</td></tr>';
    }

    /**
     * @return array<string, string>
     */
    private static function labels(): array
    {
        return [
            'title'       => __('Name', 'profilesvc'),
            'phone'       => __('Phone', 'profilesvc'),
            'address'     => __('Address', 'profilesvc'),
            'locality'    => __('City', 'profilesvc'),
            'area'        => __('State or region', 'profilesvc'),
            'postal_code' => __('Postal code', 'profilesvc'),
            'country'     => __('Country (two letters)', 'profilesvc'),
        ];
    }

    /**
     * Return the label of a field of the API.
     */
    public static function label(string $path): string
    {
        $labels = self::labels();
        $fields = [
            'title'             => $labels['title'],
            'phoneNumbers'      => $labels['phone'],
            'storefrontAddress' => $labels['address'],
            'regularHours'      => __('Opening hours', 'profilesvc'),
            'summary'           => __('Text of the post', 'profilesvc'),
            'callToAction'      => __('Link of the post', 'profilesvc'),
        ];
        // The provider writes storefront_address for storefrontAddress.
        $name = lcfirst(str_replace('_', '', ucwords((string) strtok($path, '.'), '_')));
        return $fields[$name] ?? $path;
    }
}
