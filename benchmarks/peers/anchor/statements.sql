-- The statements of both anchors, on the tables of the service. Instants are milliseconds. `status` is that of the
-- response: 401 for a token or key that has ended, 403 for a deactivated key, 404 for a key of another owner.

-- name: signing_keys
SELECT alg, kid, private_pem FROM signing_keys
WHERE removed_at IS NULL AND active_from <= $1
ORDER BY active_from

-- name: caller
SELECT k.id, k.last_used_at,
    CASE WHEN k.revoked_at IS NOT NULL OR k.expires_at <= $7 OR u.suspended_at IS NOT NULL
            OR EXISTS (SELECT FROM revocations r WHERE r.owner_id = $1 AND r.id IN ($3, $4))
            OR EXISTS (SELECT FROM signing_keys s WHERE s.kid = $5 AND s.removed_at IS NOT NULL) THEN 401
        WHEN EXISTS (SELECT FROM holds h WHERE h.owner_id = $1 AND h.key_id = k.id) THEN 403
        WHEN k.epoch <> $6 THEN 401
        ELSE 200 END AS status
FROM keys k JOIN users u ON u.id = k.owner_id
WHERE k.owner_id = $1 AND k.client_id = $2

-- name: list
SELECT c.id, c.last_used_at, c.status,
    CASE WHEN c.status = 200 THEN (
        SELECT string_agg(p.document, ',') FROM (
            SELECT document FROM posts WHERE owner_id = $1 AND location_name = $8
            ORDER BY created_at DESC, post_id DESC LIMIT $9) p) END AS documents,
    CASE WHEN c.status = 200 THEN (
        SELECT created_at || '.' || post_id FROM posts WHERE owner_id = $1 AND location_name = $8
        ORDER BY created_at DESC, post_id DESC LIMIT 1 OFFSET $9) END AS next_page
FROM (
    SELECT k.id, k.last_used_at,
        CASE WHEN k.revoked_at IS NOT NULL OR k.expires_at <= $7 OR u.suspended_at IS NOT NULL
                OR EXISTS (SELECT FROM revocations r WHERE r.owner_id = $1 AND r.id IN ($3, $4))
                OR EXISTS (SELECT FROM signing_keys s WHERE s.kid = $5 AND s.removed_at IS NOT NULL) THEN 401
            WHEN EXISTS (SELECT FROM holds h WHERE h.owner_id = $1 AND h.key_id = k.id) THEN 403
            WHEN k.epoch <> $6 THEN 401
            WHEN k.location_name <> $8 OR NOT 'business.read' = ANY (string_to_array(k.permissions, ' ')) THEN 403
            ELSE 200 END AS status
    FROM keys k JOIN users u ON u.id = k.owner_id
    WHERE k.owner_id = $1 AND k.client_id = $2) c

-- name: status
SELECT c.last_heartbeat_at, c.plugin_version, c.wp_version, c.php_version,
    EXISTS (SELECT FROM holds h WHERE h.owner_id = $1 AND h.key_id = k.id) AS is_held,
    CASE WHEN u.suspended_at IS NOT NULL OR u.epoch <> $5
            OR EXISTS (SELECT FROM revocations r WHERE r.owner_id = $1 AND r.id = $3)
            OR EXISTS (SELECT FROM signing_keys s WHERE s.kid = $4 AND s.removed_at IS NOT NULL) THEN 401
        WHEN k.id IS NULL OR k.revoked_at IS NOT NULL OR k.expires_at <= $6 THEN 404
        ELSE 200 END AS status
FROM users u
    LEFT JOIN keys k ON k.owner_id = u.id AND k.client_id = $2
    LEFT JOIN connections c ON c.owner_id = k.owner_id AND c.key_id = k.id
WHERE u.id = $1

-- name: credentials
SELECT k.id, k.last_used_at, k.permissions, k.location_name, k.business_id, k.epoch, k.expires_at, u.plan,
    (SELECT string_agg(s.digest, ' ') FROM secrets s
        WHERE s.owner_id = $1 AND s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > $3)) AS digests,
    CASE WHEN k.revoked_at IS NOT NULL OR k.expires_at <= $3 OR u.suspended_at IS NOT NULL THEN 401
        WHEN EXISTS (SELECT FROM holds h WHERE h.owner_id = $1 AND h.key_id = k.id) THEN 403
        ELSE 200 END AS status
FROM keys k JOIN users u ON u.id = k.owner_id
WHERE k.owner_id = $1 AND k.client_id = $2

-- name: beat
INSERT INTO connections (owner_id, key_id, last_heartbeat_at, plugin_version, wp_version, php_version)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (owner_id, key_id) DO UPDATE SET last_heartbeat_at = excluded.last_heartbeat_at,
    plugin_version = coalesce(excluded.plugin_version, connections.plugin_version),
    wp_version = coalesce(excluded.wp_version, connections.wp_version),
    php_version = coalesce(excluded.php_version, connections.php_version)
WHERE connections.last_heartbeat_at <= excluded.last_heartbeat_at

-- name: extend
UPDATE contacts SET ended_at = $3::bigint
WHERE owner_id = $1 AND key_id = $2 AND ended_at >= $3::bigint - 7200000 AND started_at BETWEEN $4 AND $3 AND ended_at < $3

-- name: start
INSERT INTO contacts (owner_id, key_id, started_at, ended_at)
SELECT c.owner_id, c.key_id, $3::bigint, $3::bigint FROM connections c
WHERE c.owner_id = $1 AND c.key_id = $2 AND NOT EXISTS (
    SELECT FROM contacts WHERE owner_id = $1 AND key_id = $2 AND ended_at >= $3::bigint - 7200000
        AND started_at BETWEEN $4 AND $3)
ON CONFLICT DO NOTHING

-- name: used
UPDATE keys SET last_used_at = $3 WHERE owner_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)

-- name: usage
INSERT INTO key_usage (owner_id, key_id, day, requests, client_errors, server_errors)
VALUES ($1, $2, $3, $4, 0, 0)
ON CONFLICT (owner_id, key_id, day) DO UPDATE SET requests = key_usage.requests + excluded.requests

-- name: issued
INSERT INTO audit (owner_id, at, month, event, key_id, actor, ip_prefix, details, once, times)
VALUES ($1, $2, $3, 'token.issued', $4, $5, $6, $7, $8, $9)
ON CONFLICT (owner_id, once, month) DO UPDATE SET details = excluded.details, times = audit.times + excluded.times
