<?php

namespace Profilesvc;

/**
 * Hosts as browsers and the service compare them: in lower case, in A-labels, addresses in their usual form.
 *
 * It needs nothing of WordPress. Without PHP's intl it leaves out rare mappings of UTS 46.
 */
final class Host
{
    // [host]
    private const HYPHENS  = 8 | 16 | 32; // errors of PHP's intl for hyphens where browsers accept them
    private const CAPITALS = [[0x41, 0x5a, 32], [0xc0, 0xd6, 32], [0xd8, 0xde, 32], [0x391, 0x3a9, 32], [0x410, 0x42f, 32], [0x400, 0x40f, 80]];
    private const NUMBER   = '/^(?:[0-9]+|0x[0-9a-f]*)$/D';

    /**
     * Return the host in its one form, or an empty string if no browser accepts it.
     */
    public static function canonical(string $host): string
    {
        if ('[' === substr($host, 0, 1)) {
            $packed = ']' === substr($host, -1) && filter_var(substr($host, 1, -1), FILTER_VALIDATE_IP, FILTER_FLAG_IPV6)
                ? inet_pton(substr($host, 1, -1)) : false;
            return false === $packed ? '' : '[' . self::ofIpv6($packed) . ']';
        }
        $host   = str_replace(["\u{3002}", "\u{ff0e}", "\u{ff61}"], '.', $host); // full stops of other scripts
        $labels = array_map([self::class, 'ofLabel'], explode('.', (string) preg_replace('/\.$/D', '', $host)));
        $host   = implode('.', $labels);
        if (in_array('', $labels, true) || strlen($host) > 253) {
            return '';
        }
        return preg_match(self::NUMBER, end($labels)) ? self::ofIpv4($labels) : $host;
    }
    // [/host]

    /**
     * Return a label as an A-label, or an empty string.
     */
    private static function ofLabel(string $label): string
    {
        if (!preg_match('/[^\x00-\x7f]/', $label)) {
            $label = strtolower($label);
        } elseif (0 === stripos($label, 'xn--')) {
            return '';
        } elseif (function_exists('idn_to_ascii')) {
            $flags = IDNA_NONTRANSITIONAL_TO_ASCII | IDNA_CHECK_BIDI | IDNA_CHECK_CONTEXTJ;
            idn_to_ascii($label, $flags, INTL_IDNA_VARIANT_UTS46, $found);
            $label = 0 === (($found['errors'] ?? 1) & ~self::HYPHENS) ? (string) $found['result'] : '';
        } else {
            $points = self::points($label);
            $label  = $points ? 'xn--' . self::punycode(array_map([self::class, 'lower'], $points)) : '';
        }
        return preg_match('/^[a-z0-9_-]{1,63}$/D', $label) ? $label : '';
    }

    /**
     * @param list<string> $labels numbers, also hexadecimal or octal ones, and fewer than four of them
     */
    private static function ofIpv4(array $labels): string
    {
        $value = 0;
        foreach ($labels as $at => $label) {
            $isLast = count($labels) - 1 === $at;
            $octal  = strlen($label) > 1 && '0' === $label[0] && 'x' !== $label[1];
            if (!preg_match(self::NUMBER, $label) || strlen($label) > 14 || ($octal && preg_match('/[89]/', $label))) {
                return '';
            }
            $number = '0x' === $label ? 0 : intval($label, 0);
            if ($at > 3 || $number >= ($isLast ? 256 ** (4 - $at) : 256)) {
                return '';
            }
            $value += $isLast ? $number : $number << 8 * (3 - $at);
        }
        return (string) long2ip($value);
    }

    private static function ofIpv6(string $packed): string
    {
        if (0 === strpos($packed, str_repeat("\0", 10) . "\xff\xff")) { // browsers write the last four bytes in hexadecimal
            return vsprintf('::ffff:%x:%x', array_values((array) unpack('n2', substr($packed, 12))));
        }
        return (string) inet_ntop($packed);
    }

    /**
     * @return list<int> the code points of a text, or an empty list if it is not UTF-8
     */
    private static function points(string $text): array
    {
        if (!preg_match_all('/./us', $text, $found)) {
            return [];
        }
        return array_map(static function (string $char): int {
            $bytes = array_values((array) unpack('C*', $char));
            $point = $bytes[0] & (0xff >> (count($bytes) > 1 ? count($bytes) + 1 : 0));
            foreach (array_slice($bytes, 1) as $byte) {
                $point = $point << 6 | ($byte & 0x3f);
            }
            return $point;
        }, $found[0]);
    }

    /**
     * Return the small letter of a Latin, Greek or Cyrillic capital.
     */
    private static function lower(int $point): int
    {
        foreach (self::CAPITALS as [$first, $last, $step]) {
            if ($point >= $first && $point <= $last) {
                return $point + $step;
            }
        }
        $isUpper = ($point >= 0x100 && $point <= 0x137) || ($point >= 0x14a && $point <= 0x177) ? 0 === $point % 2
            : (($point >= 0x139 && $point <= 0x148) || ($point >= 0x179 && $point <= 0x17e)) && 1 === $point % 2;
        return $isUpper ? $point + 1 : $point;
    }

    /**
     * Encode code points by RFC 3492.
     *
     * @param list<int> $points
     */
    private static function punycode(array $points): string
    {
        $basic = array_filter($points, static fn (int $point): bool => $point < 0x80);
        $text  = implode('', array_map('chr', $basic)) . ($basic ? '-' : '');
        [$next, $delta, $bias, $done] = [0x80, 0, 72, count($basic)];
        while ($done < count($points)) {
            $least  = min(array_filter($points, static fn (int $point): bool => $point >= $next));
            $delta += ($least - $next) * ($done + 1);
            $next   = $least;
            foreach ($points as $point) {
                $delta += $point < $next ? 1 : 0;
                if ($point === $next) {
                    $text .= self::variable($delta, $bias);
                    $bias  = self::adapted($delta, $done + 1, count($basic) === $done);
                    $delta = 0;
                    $done++;
                }
            }
            $delta++;
            $next++;
        }
        return $text;
    }

    private static function variable(int $value, int $bias): string
    {
        $text = '';
        for ($at = 36; true; $at += 36) {
            $limit = max(1, min(26, $at - $bias));
            $digit = $value < $limit ? $value : $limit + ($value - $limit) % (36 - $limit);
            $text .= chr($digit + ($digit < 26 ? 97 : 22));
            if ($value < $limit) {
                return $text;
            }
            $value = intdiv($value - $limit, 36 - $limit);
        }
    }

    private static function adapted(int $delta, int $count, bool $isFirst): int
    {
        $delta  = intdiv($delta, $isFirst ? 700 : 2);
        $delta += intdiv($delta, $count);
        for ($bias = 0; $delta > 455; $bias += 36) {
            $delta = intdiv($delta, 35);
        }
        return $bias + intdiv(36 * $delta, $delta + 38);
    }
}
