// The header Retry-After: seconds or a date (RFC 9110 §10.2.3). data/fixtures/retry_after_cases.json has the cases.
const LONGEST = 31 * 86_400; // seconds; a monthly quota resets within it
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)";
const DATES = [
  `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT`,
  `(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT`,
  `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ${MONTH} (?<day>\\d\\d| \\d) ${TIME} (?<year>\\d{4})`,
].map((pattern) => new RegExp(`^${pattern}$`));

/** Return the seconds to wait, from 0 to 31 days, or null if there is no header or an invalid one. `now` is in milliseconds. */
export function retryAfter(value: string | null, now: number): number | null {
  const text = (value ?? "").replace(/^[ \t]+|[ \t]+$/g, "");
  if (/^[0-9]+$/.test(text)) return Math.min(Number(text), LONGEST);
  const parts = DATES.map((date) => date.exec(text)?.groups).find((groups) => groups !== undefined);
  const at = parts && instant(parts, now);
  return at === undefined ? null : Math.min(Math.max(at - now, 0) / 1000, LONGEST);
}

function instant(parts: Record<string, string>, now: number): number | undefined {
  const { year: written = "", month = "", day, hour, minute, second } = parts;
  let year = Number(written);
  if (written.length === 2) {
    const thisYear = new Date(now).getUTCFullYear();
    year += thisYear - (thisYear % 100);
    if (year > thisYear + 50) year -= 100; // RFC 9110 §5.6.7
  }
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, MONTHS.indexOf(month), Number(day));
  if (year === 0 || midnight.getUTCDate() !== Number(day)) return undefined; // 31 April
  return midnight.getTime() + 1000 * (3600 * Number(hour) + 60 * Number(minute) + Number(second));
}
