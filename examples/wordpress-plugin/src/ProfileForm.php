<?php

namespace Profilesvc;

/**
 * The form of the profile: what it shows and what it accepts.
 */
final class ProfileForm
{
    /**
     * @param array<string, mixed> $form as it was posted, without slashes
     *
     * @return array<string, mixed>
     */
    public static function read(array $form): array
    {
        $hours = [];
        foreach (ProfileSync::DAYS as $day) {
            $open  = self::clock($form['hours'][$day]['open'] ?? '');
            $close = self::clock($form['hours'][$day]['close'] ?? '');
            if ($open && $close) {
                $hours[$day] = ['open' => $open, 'close' => $close];
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
     * @param mixed $value
     */
    private static function clock($value): string
    {
        return is_string($value) && preg_match('/^([01]\d|2[0-3]):[0-5]\d$/', $value) ? $value : '';
    }

    /**
     * @param array<string, mixed> $profile
     */
    public static function render(array $profile, bool $posts, bool $mayPost): void
    {
        SettingsPage::open('save');
        echo '<table class="form-table" role="presentation">';
        foreach (self::labels() as $name => $label) {
            $value = $profile[$name] ?? ('title' === $name ? get_bloginfo('name', 'raw') : '');
            self::row($name, $label, is_array($value) ? implode("\n", $value) : $value);
        }
        foreach (ProfileSync::DAYS as $number => $day) {
            self::day($day, $number, $profile['hours'][$day] ?? []);
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

    /**
     * @param array<string, string> $hours
     */
    private static function day(string $day, int $number, array $hours): void
    {
        $name = $GLOBALS['wp_locale']->get_weekday(($number + 1) % 7);
        printf('<tr><th>%s</th><td>', esc_html($name));
        foreach (['open' => __('Opens', 'profilesvc'), 'close' => __('Closes', 'profilesvc')] as $end => $label) {
            printf(
                '<label>%s <input type="time" name="hours[%s][%s]" value="%s"></label> ',
                esc_html($label),
                esc_attr($day),
                esc_attr($end),
                esc_attr($hours[$end] ?? '')
            );
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
