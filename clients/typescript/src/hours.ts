// Opening hours as a person writes them, such as `9am-5pm` or `17:00-01:00`: the rule of the service's dashboard.
import type { SpecialHourPeriod, TimeOfDay, TimePeriod } from "./generated/types.gen.js";

const DAYS = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"] as const;
const DAY = 24 * 60;
const LONG = 16 * 60;
const LONGEST = 300; // characters of a line
const RANGES = "must be times such as 09:00-17:30, with commas between several";
const TIMES = "must have times from 00:00 to 24:00, and open before 24:00";
const OVERLAP = "must not have times that overlap";
const DATES = "must have a line such as `2026-12-24 09:00-12:00` or `2026-12-25 closed` for each date";
const REAL_DATES = "must have dates that exist, with their year";
const NEXT_DAY = "must close at 11:59 or earlier on the next day, less than 24 hours after it opens";

const DASH = /[\u2010-\u2015\u2212\u301c~]/g;
const CLOSED = /^(?:closed|geschlossen|zu|ruhetag)[.!]?$/;
const ALL_DAY =
  /^(?:open )?(?:24 ?(?:hours?|hrs?|h|stunden|std\.?)|24\/7|all day|around the clock|durchgehend|ganztägig|ganztags|rund um die uhr)(?: (?:open|geöffnet))?[.!]?$/;
const FILLED = /^(?:open |durchgehend |von |from )+|(?: durchgehend| geöffnet| open)*\.?$/g;
const NEXT = / ?(?:[,;&+/]| and | und | u\. ) ?/;
const TIME =
  "(?:(?:12 )?(midnight|mitternacht|noon|mittags?)|([0-9]{1,2}?)(?:(?:[:.h]| ?uhr )?([0-9]{2}))?" +
  " ?(?:(a\\.?m\\.?|p\\.?m\\.?|a|p)|uhr|h|hrs?\\.?|hours|o'clock)?)";
const RANGE = new RegExp(`^${TIME} ?(?:-+|to|bis|until|till?) ?${TIME}$`);
const DATE =
  /^(?:([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})|([0-9]{1,2})\. ?([0-9]{1,2})\. ?([0-9]{4}))(?::| -)? (.*)$/s;

export type Day = (typeof DAYS)[number];
type Span = [opens: number, closes: number];
type Period = TimePeriod | SpecialHourPeriod;

/** A text that is no opening hours; its message is the rule. */
export class HoursRejected extends Error {
  override name = "HoursRejected";
}

/**
 * Return the periods of a day for `regularHours` and `moreHours`. One that closes at or before the time at which it
 * opens closes on the next day. Throws a HoursRejected.
 */
export function hours(day: Day, text: string): TimePeriod[] {
  const following = DAYS[(DAYS.indexOf(day) + 1) % 7] ?? day;
  return spans(text).map(([opens, closes]) => ({
    openDay: day,
    openTime: time(opens),
    closeDay: closes > opens ? day : following,
    closeTime: time(closes),
  }));
}

/** Return the periods for `specialHours`, from a line such as `2026-12-25 closed` for each date. Throws a HoursRejected. */
export function specialHours(text: string): SpecialHourPeriod[] {
  const lines = text.split(/\r\n|\n|\r/).map((line) => (line.length > LONGEST ? rejected(DATES) : plain(line)));
  return lines.filter((line) => line !== "").flatMap((line) => {
    const [, y, m, d, german, month, year, rest = ""] = DATE.exec(line) ?? rejected(DATES);
    return ofDate(Number(y ?? year), Number(m ?? month), Number(d ?? german), rest);
  });
}

/** Return the hours of a day as a person reads them: `09:00-12:00, 17:00-01:00`; empty if it is closed. */
export function hoursText(day: Day, periods: TimePeriod[]): string {
  const own = periods.filter(({ openDay }) => openDay === day);
  return own.sort((a, b) => minutes(a.openTime) - minutes(b.openTime)).map(range).join(", ");
}

/**
 * Return how long a period is, such as `16:00`, if its times may be swapped, and so should be confirmed; empty if not.
 * That is more than 16 hours, or 16 hours past midnight, but not all day.
 */
export function longHours(period: Period): string {
  const [opens, closes] = [minutes(period.openTime), minutes(period.closeTime)];
  const length = closes > opens ? closes - opens : closes - opens + DAY;
  const isLong = length > LONG || (length === LONG && closes <= opens);
  return isLong && !(opens === 0 && length === DAY) ? `${Math.floor(length / 60)}:${two(length % 60)}` : "";
}

function ofDate(year: number, month: number, day: number, text: string): SpecialHourPeriod[] {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (year < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) throw new HoursRejected(REAL_DATES);
  date.setUTCDate(day + 1);
  const endDate = { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
  const startDate = { year, month, day };
  const all = spans(text);
  if (all.length === 0) return [{ startDate, closed: true }];
  return all.map(([opens, closes]) => {
    if (closes <= opens && endDate.year > 9999) throw new HoursRejected(REAL_DATES);
    if (closes <= opens && (closes >= 12 * 60 || closes === opens)) throw new HoursRejected(NEXT_DAY);
    const until = closes > opens ? {} : { endDate };
    return { startDate, ...until, openTime: time(opens), closeTime: time(closes) };
  });
}

function rejected(rule: string): never {
  throw new HoursRejected(rule);
}

function plain(text: string): string {
  const narrow = text.normalize("NFKC").replace(DASH, "-").replaceAll("\u3001", ",");
  return narrow.toLowerCase().replace(/[ \t\r\n]+/g, " ").replace(/^ | $/g, "");
}

/** Return when each part opens and closes, in minutes from midnight. 00:00-00:00 is 00:00-24:00, all day. */
function spans(text: string): Span[] {
  if (text.length > LONGEST) throw new HoursRejected(RANGES);
  const line = plain(text);
  if (line === "" || CLOSED.test(line)) return [];
  if (ALL_DAY.test(line)) return [[0, DAY]];
  const parts = line.split(NEXT).filter((part) => part !== "");
  const all = (parts.length > 0 ? parts : [line]).map(span);
  let last = 0;
  for (const [opens, closes] of [...all].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (opens < last) throw new HoursRejected(OVERLAP);
    last = closes > opens ? closes : closes + DAY;
  }
  return all;
}

/** Return when a part opens and closes. If only one time has am or pm, the shorter hours are meant. */
function span(text: string): Span {
  const found = RANGE.exec(text.replace(FILLED, "")) ?? rejected(RANGES);
  const isHalf = found[4] !== undefined || found[8] !== undefined;
  const [first, second] = [times(found.slice(1, 5), isHalf), times(found.slice(5, 9), isHalf)];
  const choices = first.flatMap((opens) => second.map((closes): Span => [opens, closes]));
  const length = ([opens, closes]: Span): number => (closes - opens - 1 + DAY) % DAY;
  const [opens, closes] = choices.reduce((best, next) => (length(next) < length(best) ? next : best));
  if (opens === DAY) throw new HoursRejected(TIMES);
  return opens === 0 && closes === 0 ? [0, DAY] : [opens, closes];
}

/** Return the minutes from midnight that a time can mean: two, if it can be in either half of the day. */
function times([word, hours, minutes, half]: (string | undefined)[], isHalf: boolean): number[] {
  if (word !== undefined) return [word === "midnight" || word === "mitternacht" ? 0 : DAY / 2];
  const [hour, minute] = [Number(hours), Number(minutes ?? 0)];
  const is12 = hour >= 1 && hour <= 12;
  if (minute > 59 || hour * 60 + minute > DAY || (half !== undefined && !is12)) throw new HoursRejected(TIMES);
  if (!isHalf || !is12) return [hour * 60 + minute];
  const [morning, evening] = [(hour % 12) * 60 + minute, ((hour % 12) + 12) * 60 + minute];
  return half === undefined ? [morning, evening] : [half.startsWith("p") ? evening : morning];
}

function minutes(time: TimeOfDay | null | undefined): number {
  return (time?.hours ?? 0) * 60 + (time?.minutes ?? 0);
}

function time(minutes: number): TimeOfDay {
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return { ...(hours > 0 && { hours }), ...(rest > 0 && { minutes: rest }) };
}

function range({ openTime, closeTime }: Period): string {
  const clock = (at: number): string => `${two(Math.floor(at / 60))}:${two(at % 60)}`;
  return `${clock(minutes(openTime))}-${clock(minutes(closeTime))}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
