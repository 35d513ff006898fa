<?php
// The whole story by the client that openapi-generator generates for PHP.
declare(strict_types=1);

use OpenAPI\Client\Api\{ConnectionApi, KeysApi, LocationsApi, PostsApi, SyncApi, TokensApi};
use OpenAPI\Client\{ApiException, Configuration};
use OpenAPI\Client\Model\{
    ClientCredentialsGrant,
    CredentialCheck,
    Heartbeat,
    KeyCreate,
    LocalPost,
    Location,
    PhoneNumbers,
    RefreshGrant,
    TokenRequest
};

require getenv('AUTOLOAD');
spl_autoload_register(function (string $class): void {
    $path = getenv('GENERATED') . '/' . strtr(substr($class, strlen('OpenAPI\\Client\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'OpenAPI\\Client\\') && is_file($path)) {
        require $path;
    }
});
set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    throw new ErrorException($message, 0, $level, $file, $line);
});

const LOCATION = 'locations/111';

function expect(bool $condition, string $what): void
{
    if (!$condition) {
        throw new RuntimeException("not so: $what");
    }
}

/** @param class-string $api */
function api(string $api, ?string $token = null): object
{
    $configuration = (new Configuration())->setHost(getenv('BASE_URL'));
    return new $api(null, $token === null ? $configuration : $configuration->setAccessToken($token));
}

function refused(callable $call): string
{
    try {
        $call();
    } catch (ApiException $error) {
        return $error->getResponseObject()->getError()->getCode();
    }
    throw new RuntimeException('nothing was refused');
}

$user = getenv('USER_TOKEN');
$keys = api(KeysApi::class, $user);
$key = $keys->createKey(
    new KeyCreate(['name' => 'Story', 'business_id' => 10, 'assigned_location_id' => LOCATION])
)->getData();
$pair = ['client_id' => $key->getClientId(), 'client_secret' => $key->getClientSecret()];
$tokens = api(TokensApi::class);
$token = $tokens->issueToken(new TokenRequest(['grant_type' => 'client_credentials'] + $pair))->getData();
$refresh = ['grant_type' => 'refresh_token', 'refresh_token' => $token->getRefreshToken()];
$token = $tokens->issueToken(new TokenRequest($refresh))->getData()->getAccessToken();

$connection = api(ConnectionApi::class);
$checked = $connection->validateCredentials(new CredentialCheck($pair))->getData();
expect($checked->getValid() && $checked->getLocation()->getId() === LOCATION, 'the credentials are valid');
$wrong = $connection->validateCredentials(new CredentialCheck(['client_secret' => 'wrong'] + $pair))->getData();
expect(!$wrong->getValid() && $wrong->getReason() === 'invalid_credentials', 'a guess is not');
$report = new Heartbeat(['plugin_version' => '2.4.1', 'detected_plugins' => ['seo']]);
$beat = api(ConnectionApi::class, $token)->sendHeartbeat($report)->getData();
expect($beat->getReceived() && $beat->getNextHeartbeatIn() === 3600, 'the heartbeat is received');

$connection = api(ConnectionApi::class, $user);
$status = $connection->getConnectionStatus($key->getClientId())->getData();
expect($status->getConnectionStatus() === 'online' && $status->getWpVersion() === null, 'the site is online');
expect($status->getHistory() === null, 'there is no history unless it is asked for');
$history = $connection->getConnectionStatus($key->getClientId(), 'true')->getData()->getHistory();
expect(end($history)->getState() === 'online', 'there is a history');

$posts = api(PostsApi::class, $token);
$post = $posts->createPost(LOCATION, new LocalPost(['summary' => 'Hello']))->getData();
expect($post->getState() === 'PROCESSING', 'the post is being processed');
$id = basename($post->getName());
$changed = $posts->changePost($id, LOCATION, new LocalPost(['summary' => 'Hello again']))->getData();
expect($changed->getSummary() === 'Hello again', 'the post is changed');
$page = $posts->listPosts(LOCATION, 2)->getData();
expect($page->getLocalPosts()[0]->getName() === $post->getName() && $page->getNextPageToken() !== '', 'it is listed');
expect($posts->deletePost($id, LOCATION)->getData()->getDeleted(), 'the post is deleted');

expect(api(LocationsApi::class, $user)->listLocations()->getData()->getPagination()->getTotalCount() > 1, 'locations');
$location = api(LocationsApi::class, $token)->getLocation('111')->getData();
expect($location->getLocationState()->getIsVerified(), 'the location is verified');
$sync = api(SyncApi::class, $token);
expect(((array) $sync->compareProfile('111')->getData()->getProvider())['title'] !== '', 'the profiles are compared');

$profile = new Location(['phone_numbers' => new PhoneNumbers(['primary_phone' => '+44 20 7946 0999'])]);
$preview = $sync->syncProfile('111', $profile, 'true')->getData();
expect($preview->getValidateOnly() && $preview->getSyncId() === null, 'a preview changes nothing');
$result = $sync->syncProfile('111', $profile, 'false', null, 'story')->getData();
$again = $sync->syncProfile('111', $profile, 'false', null, 'story')->getData();
expect($result->getFieldsUpdated() === ['phoneNumbers.primaryPhone'], 'the phone number is updated');
expect($result->getSyncId() !== null && $result->getSyncId() === $again->getSyncId(), 'a repeat changes nothing');
$entries = $sync->listSyncHistory('111')->getData()->getHistory();
expect($entries[0]->getSyncId() === $result->getSyncId(), 'the sync is in the history');

$denied = refused(fn () => api(KeysApi::class, $token)->listKeys());
expect($denied === 'AUTH_INSUFFICIENT_PERMISSIONS', 'a service token lists no keys');
$ids = array_map(fn ($entry) => $entry->getClientId(), $keys->listKeys()->getData()->getCredentials());
expect(in_array($key->getClientId(), $ids, true), 'the key is listed');
expect($keys->revokeKey($key->getClientId())->getData()->getRevoked(), 'the key is revoked');
expect(refused(fn () => $posts->listPosts(LOCATION)) === 'AUTH_INVALID_TOKEN', 'its token is worth nothing');
