<?php

namespace Profilesvc;

/**
 * The opening hours of a day as a person writes them: 09:00-17:30, 9am-5pm, 9 bis 17 Uhr, closed, 24 hours.
 *
 * The service's dashboard reads the same texts. It uses nothing of WordPress.
 */
final class Hours
{
    public const DAYS    = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'];
    public const RANGES  = 'must be times such as 09:00-17:30, with commas between several';
    public const TIMES   = 'must have times from 00:00 to 24:00, and open before 24:00';
    public const OVERLAP = 'must not have times that overlap';

    private const DAY     = 1440; // minutes
    private const LONG    = 960;  // usually a mistake, such as 17:00-09:00 for 09:00-17:00
    private const WIDE    = '/[\x{ff01}-\x{ff5e}]/u'; // such as ９ for 9
    private const DASH    = '/[\x{2010}-\x{2015}\x{2212}\x{301c}~]/u';
    private const SPACE   = '/[ \t\r\n\x{a0}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]+/u';
    private const CLOSED  = '/^(?:closed|geschlossen|zu|ruhetag)[.!]?$/';
    private const ALL_DAY = '/^(?:open )?(?:24 ?(?:hours?|hrs?|h|stunden|std\.?)|24\/7|all day|around the clock|durchgehend'
        . '|ganztägig|ganztags|rund um die uhr)(?: (?:open|geöffnet))?[.!]?$/';
    private const FILLED  = '/^(?:open |durchgehend |von |from )+|(?: durchgehend| geöffnet| open)*\.?$/';
    private const NEXT    = '~ ?(?:[,;&+/]| and | und | u\. ) ?~';
    private const TIME    = '(?:(?:12 )?(midnight|mitternacht|noon|mittags?)|([0-9]{1,2}?)(?:(?:[:.h]| ?uhr )?([0-9]{2}))?'
        . " ?(?:(a\\.?m\\.?|p\\.?m\\.?|a|p)|uhr|h|hrs?\\.?|hours|o'clock)?)";

    /**
     * Return the hours of a day as a text. Earlier versions stored the time at which it opens and that at which it
     * closes.
     *
     * @param mixed $value
     */
    public static function text($value): string
    {
        if (is_array($value)) {
            [$open, $close] = [$value['open'] ?? '', $value['close'] ?? ''];
            $value = is_string($open) && is_string($close) && '' !== "$open$close" ? "$open-$close" : '';
        }
        return is_string($value) ? $value : '';
    }

    /**
     * Return the periods of a day in the provider's format. One that closes at or before the time at which it opens
     * closes on the next day.
     *
     * @return list<array<string, mixed>>
     *
     * @throws \InvalidArgumentException the text is something else
     */
    public static function periods(string $day, string $text): array
    {
        $following = self::dayAfter($day);
        $periods   = [];
        foreach (self::spans($text) as [$start, $end]) {
            $periods[] = [
                'openDay'   => $day,
                'openTime'  => self::time($start),
                'closeDay'  => $end > $start ? $day : $following,
                'closeTime' => self::time($end),
            ];
        }
        return $periods;
    }

    /**
     * Return the hours of a day as the form shows them: `09:00-12:00, 13:00-18:00`.
     *
     * @throws \InvalidArgumentException the text is something else
     */
    public static function shown(string $text): string
    {
        $spans = self::spans($text);
        sort($spans);
        return implode(', ', array_map([self::class, 'range'], $spans));
    }

    /**
     * Return the times that close on the next day: `17:00-01:00`.
     *
     * @throws \InvalidArgumentException the text is something else
     */
    public static function overnight(string $text): string
    {
        $spans = array_filter(self::spans($text), static function (array $span): bool {
            return $span[1] <= $span[0];
        });
        return implode(', ', array_map([self::class, 'range'], $spans));
    }

    /**
     * Return how long hours are that are usually a mistake, such as 16:00: more than 16 hours, or 16 past midnight. All
     * day is none.
     *
     * @throws \InvalidArgumentException the text is something else
     */
    public static function long(string $text): string
    {
        $found = [];
        foreach (self::spans($text) as [$start, $end]) {
            $length = $end > $start ? $end - $start : $end - $start + self::DAY;
            $isLong = $length > self::LONG || (self::LONG === $length && $end <= $start);
            if ($isLong && [0, self::DAY] !== [$start, $length]) {
                $found[] = sprintf('%d:%02d', intdiv($length, 60), $length % 60);
            }
        }
        return implode(', ', $found);
    }

    public static function dayAfter(string $day): string
    {
        return self::DAYS[((int) array_search($day, self::DAYS, true) + 1) % 7];
    }

    /**
     * Return when each part opens and closes, in minutes from midnight. 00:00-00:00 is 00:00-24:00, all day.
     *
     * @return list<array{int, int}>
     */
    private static function spans(string $text): array
    {
        if (!preg_match('/^.{0,300}$/us', $text)) {
            throw new \InvalidArgumentException(self::RANGES); // too long, or no UTF-8
        }
        $plain = self::plain($text);
        if ('' === $plain || preg_match(self::CLOSED, $plain)) {
            return [];
        }
        if (preg_match(self::ALL_DAY, $plain)) {
            return [[0, self::DAY]];
        }
        $spans = array_map([self::class, 'span'], preg_split(self::NEXT, $plain, -1, PREG_SPLIT_NO_EMPTY) ?: [$plain]);
        $last  = 0;
        $order = $spans;
        sort($order);
        foreach ($order as [$start, $end]) {
            if ($start < $last) {
                throw new \InvalidArgumentException(self::OVERLAP);
            }
            $last = $end > $start ? $end : $end + self::DAY;
        }
        return $spans;
    }

    /**
     * Return a text in lower case, with plain digits, spaces, dashes and commas instead of typographic ones.
     */
    private static function plain(string $text): string
    {
        $narrow = (string) preg_replace_callback(self::WIDE, static function (array $match): string {
            return chr(((ord($match[0][1]) & 0x3f) << 6 | (ord($match[0][2]) & 0x3f)) - 0xee0);
        }, $text);
        $narrow = (string) preg_replace(self::DASH, '-', strtr($narrow, ['、' => ',', 'Ä' => 'ä', 'Ö' => 'ö']));
        return trim(strtolower((string) preg_replace(self::SPACE, ' ', $narrow)), ' ');
    }

    /**
     * Return when a part opens and closes. If only one time has am or pm, the shorter hours are meant.
     *
     * @return array{int, int}
     */
    private static function span(string $text): array
    {
        $range = '/^' . self::TIME . ' ?(?:-+|to|bis|until|till?) ?' . self::TIME . '$/';
        if (!preg_match($range, (string) preg_replace(self::FILLED, '', $text), $match)) {
            throw new \InvalidArgumentException(self::RANGES);
        }
        $ends    = array_chunk(array_pad(array_slice($match, 1), 8, ''), 4);
        $isHalf  = '' !== $ends[0][3] || '' !== $ends[1][3];
        $length  = 2 * self::DAY;
        $span    = [0, 0];
        $closing = self::times($ends[1], $isHalf);
        foreach (self::times($ends[0], $isHalf) as $start) {
            foreach ($closing as $end) {
                $own = ($end - $start - 1 + self::DAY) % self::DAY;
                if ($own < $length) {
                    [$length, $span] = [$own, [$start, $end]];
                }
            }
        }
        if (self::DAY === $span[0]) {
            throw new \InvalidArgumentException(self::TIMES);
        }
        return [0, 0] === $span ? [0, self::DAY] : $span;
    }

    /**
     * Return the minutes from midnight that a time can mean: two, if it can be in either half of the day.
     *
     * @param list<string> $parts a word, or hours, minutes, and am or pm
     *
     * @return list<int>
     */
    private static function times(array $parts, bool $isHalf): array
    {
        [$word, $hours, $minutes, $half] = $parts;
        if ('' !== $word) {
            return [in_array($word, ['midnight', 'mitternacht'], true) ? 0 : self::DAY / 2];
        }
        [$hour, $minute] = [(int) $hours, (int) $minutes];
        $is12            = $hour >= 1 && $hour <= 12;
        if ($minute > 59 || $hour * 60 + $minute > self::DAY || ('' !== $half && !$is12)) {
            throw new \InvalidArgumentException(self::TIMES);
        }
        if (!$isHalf || !$is12) {
            return [$hour * 60 + $minute];
        }
        $both = [$hour % 12 * 60 + $minute, ($hour % 12 + 12) * 60 + $minute];
        return '' === $half ? $both : [$both['p' === $half[0] ? 1 : 0]];
    }

    /**
     * @return array<string, int> with zeros, because an empty array is [] in JSON
     */
    private static function time(int $minutes): array
    {
        return ['hours' => intdiv($minutes, 60), 'minutes' => $minutes % 60];
    }

    /**
     * @param array{int, int} $span
     */
    private static function range(array $span): string
    {
        $clock = static function (int $minutes): string {
            return sprintf('%02d:%02d', intdiv($minutes, 60), $minutes % 60);
        };
        return $clock($span[0]) . '-' . $clock($span[1]);
    }
}
