// All pages of a list, whichever way the list names its next page.
type Place = { pageToken?: string; before?: string; after?: string; page?: number; limit?: number };
type Pagination = { page: number; hasMore: boolean };
type Cursors = { nextPageToken?: string; next_before?: string | null; next_after?: string | null; has_more?: boolean };
type Page = Cursors & { pagination?: Pagination; history?: unknown[] };
const [HISTORY_LIMIT, MAX_LIMIT] = [20, 100]; // the service's default, and what it reduces a larger limit to

/** Yield the pages of a list: `pages((query) => data(listPosts({ client, query })), { locationId })`. */
export async function* pages<Query extends object, P extends object>(
  load: (query: Query) => Promise<P>,
  query: Query,
): AsyncGenerator<P, void, undefined> {
  for (let place: Place | null = {}; place; ) {
    const page: P = await load({ ...query, ...place });
    yield page;
    place = next(page, { ...query, ...place });
  }
}

function next(page: Page, place: Place): Place | null {
  if (page.nextPageToken) return { pageToken: page.nextPageToken };
  if (page.next_before) return { before: page.next_before };
  if (page.has_more && page.next_after) return { after: page.next_after };
  if (page.pagination?.hasMore) return { page: page.pagination.page + 1 };
  const limit = Math.min(place.limit ?? HISTORY_LIMIT, MAX_LIMIT);
  const isFull = page.history !== undefined && page.history.length >= limit;
  return isFull ? { page: (place.page ?? 1) + 1 } : null;
}
