<?php

namespace Profilesvc;

/**
 * The header Retry-After: seconds or a date (RFC 9110, section 10.2.3).
 */
final class RetryAfter
{
    private const LONGEST = 31 * 86400; // a monthly quota resets within it
    private const MONTHS  = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
    private const TIME    = '(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)';

    /**
     * Return the seconds to wait, from 0 to 31 days, or null for an invalid header.
     */
    public static function seconds(string $value, int $now): ?int
    {
        $text = trim($value, " \t");
        if (preg_match('/^[0-9]+$/D', $text)) {
            return strlen(ltrim($text, '0')) > 9 ? self::LONGEST : min((int) $text, self::LONGEST);
        }
        $month = '(?<month>' . implode('|', self::MONTHS) . ')';
        $dates = [
            '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d\d) ' . $month . ' (?<year>\d{4}) ' . self::TIME . ' GMT',
            '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d\d)-' . $month . '-(?<year>\d\d) ' . self::TIME . ' GMT',
            '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ' . $month . ' (?<day>\d\d| \d) ' . self::TIME . ' (?<year>\d{4})',
        ];
        foreach ($dates as $date) {
            if (preg_match("/^$date\$/D", $text, $found)) {
                $at = self::instant($found, $now);
                return null === $at ? null : min(max($at - $now, 0), self::LONGEST);
            }
        }
        return null;
    }

    /**
     * @param array<int|string, string> $found
     */
    private static function instant(array $found, int $now): ?int
    {
        $year  = (int) $found['year'];
        $month = (int) array_search($found['month'], self::MONTHS, true) + 1;
        if (2 === strlen($found['year'])) {
            $current = (int) gmdate('Y', $now);
            $year     += intdiv($current, 100) * 100;
            $year     -= $year > $current + 50 ? 100 : 0; // RFC 9110, section 5.6.7
        }
        if (!checkdate($month, (int) $found['day'], $year)) {
            return null;
        }
        // gmmktime() would read a year below 100 as one of this century.
        $midnight = new \DateTimeImmutable(sprintf('%04d-%02d-%02d 00:00:00 UTC', $year, $month, (int) $found['day']));
        return $midnight->getTimestamp() + 3600 * (int) $found['hour'] + 60 * (int) $found['minute'] + (int) $found['second'];
    }
}
