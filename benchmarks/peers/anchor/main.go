// The Go anchor: net/http and pgx, with the same statements as the Python one, and the same caches and groups.
package main

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const (
	accessSeconds, refreshSeconds = 7_776_000, 2_592_000
	minute, hour, day             = 60_000, 3_600_000, 86_400_000
	cachedTokens, connections     = 1_000, 10
)

//go:embed statements.sql
var statements string

var (
	sql     = map[string]string{}
	issuer  = os.Getenv("BENCH_BASE_URL")
	pool    *pgxpool.Pool
	public  = map[string]*rsa.PublicKey{}
	private *rsa.PrivateKey
	secret  []byte
	heads   = map[string]string{}
	b64     = base64.RawURLEncoding

	tokensLock sync.RWMutex
	tokens     = map[string]*claims{}

	countsLock sync.Mutex
	requests   = map[[2]int64]int64{}
	grants     = map[grantOf]int64{}
	beats      = make(chan *beat, 1024)
)

type header struct {
	Alg string `json:"alg"`
	Typ string `json:"typ"`
	Kid string `json:"kid"`
}

type claims struct {
	Iss         string   `json:"iss"`
	Aud         string   `json:"aud"`
	Exp         int64    `json:"exp"`
	Sub         string   `json:"sub"`
	Scope       string   `json:"scope"`
	Epoch       int64    `json:"epoch"`
	Jti         string   `json:"jti"`
	Fam         string   `json:"fam"`
	Permissions []string `json:"permissions"`
	kid         string
}

type issued struct {
	Iss         string   `json:"iss"`
	Aud         string   `json:"aud"`
	Iat         int64    `json:"iat"`
	Exp         int64    `json:"exp"`
	Sub         string   `json:"sub"`
	ClientID    string   `json:"client_id"`
	Scope       string   `json:"scope"`
	Permissions []string `json:"permissions"`
	Location    string   `json:"location"`
	BusinessID  int64    `json:"business_id"`
	Epoch       int64    `json:"epoch"`
	Fam         string   `json:"fam"`
	Gen         int      `json:"gen"`
	AuthTime    int64    `json:"auth_time"`
	Jti         string   `json:"jti"`
}

type pair struct {
	TokenType        string   `json:"token_type"`
	Scope            string   `json:"scope"`
	Plan             string   `json:"plan"`
	AccessToken      string   `json:"access_token"`
	ExpiresIn        int64    `json:"expires_in"`
	Permissions      []string `json:"permissions"`
	RefreshToken     string   `json:"refresh_token"`
	RefreshExpiresIn int64    `json:"refresh_expires_in"`
}

type connectionStatus struct {
	Status     string  `json:"connection_status"`
	Seen       *string `json:"last_heartbeat_at"`
	Plugin     *string `json:"plugin_version"`
	WP         *string `json:"wp_version"`
	PHP        *string `json:"php_version"`
	ReasonHint *string `json:"reason_hint"`
	ReasonAt   *string `json:"reason_at,omitempty"`
}

type beat struct {
	owner, key, at int64
	Plugin         *string `json:"plugin_version"`
	WP             *string `json:"wp_version"`
	PHP            *string `json:"php_version"`
	done           chan error
}

type grantOf struct {
	owner, key           int64
	network, permissions string
}

func now() int64 { return time.Now().UnixMilli() }

func iso(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z") }

func monthOf(at int64) int64 {
	moment := time.UnixMilli(at).UTC()
	return time.Date(moment.Year(), moment.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// ownerOf returns the owner in `svcid_<owner>_<instant>_<name>`, or 0.
func ownerOf(clientID string) int64 {
	parts := strings.SplitN(clientID, "_", 4)
	if len(parts) < 4 || parts[0] != "svcid" {
		return 0
	}
	owner, _ := strconv.ParseInt(parts[1], 10, 64)
	return owner
}

func random() string {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		panic(err)
	}
	return b64.EncodeToString(raw)
}

func open(ctx context.Context) error {
	parts := regexp.MustCompile(`(?m)^-- name: (\w+)\n`).FindAllStringSubmatchIndex(statements, -1)
	for index, part := range parts {
		end := len(statements)
		if index+1 < len(parts) {
			end = parts[index+1][0]
		}
		sql[statements[part[2]:part[3]]] = strings.TrimSpace(statements[part[1]:end])
	}
	config, err := pgxpool.ParseConfig(os.Getenv("BENCH_DATABASE_URL"))
	if err != nil {
		return err
	}
	config.MaxConns = connections
	if pool, err = pgxpool.ConnectConfig(ctx, config); err != nil {
		return err
	}
	rows, err := pool.Query(ctx, sql["signing_keys"], now())
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var alg, kid, text string
		if err := rows.Scan(&alg, &kid, &text); err != nil {
			return err
		}
		block, _ := pem.Decode([]byte(text))
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return err
		}
		head := header{alg, "rt+jwt", kid}
		switch key := key.(type) {
		case *rsa.PrivateKey:
			head.Typ, private, public[kid] = "at+jwt", key, &key.PublicKey
		case ed25519.PrivateKey:
			secret = key.Seed()
		}
		encoded, _ := json.Marshal(head)
		heads[alg] = b64.EncodeToString(encoded)
	}
	return rows.Err()
}

func sign(alg string, payload issued) (string, error) {
	encoded, err := json.Marshal(payload)
	if err != nil {
		return "", err
	}
	signed := heads[alg] + "." + b64.EncodeToString(encoded)
	var signature []byte
	if alg == "RS256" {
		digest := sha256.Sum256([]byte(signed))
		if signature, err = rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest[:]); err != nil {
			return "", err
		}
	} else {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(signed))
		signature = mac.Sum(nil)
	}
	return signed + "." + b64.EncodeToString(signature), nil
}

var errToken = errors.New("the token is invalid")

func checkSignature(token string) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errToken
	}
	var raw [3][]byte
	for index, part := range parts {
		var err error
		if raw[index], err = b64.DecodeString(part); err != nil {
			return nil, err
		}
	}
	var head header
	if err := json.Unmarshal(raw[0], &head); err != nil {
		return nil, err
	}
	key := public[head.Kid]
	if key == nil || head.Alg != "RS256" || head.Typ != "at+jwt" {
		return nil, errToken
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], raw[2]); err != nil {
		return nil, err
	}
	found := &claims{kid: head.Kid}
	if err := json.Unmarshal(raw[1], found); err != nil {
		return nil, err
	}
	if found.Iss != issuer || found.Aud != issuer {
		return nil, errToken
	}
	return found, nil
}

// verified returns the claims of the caller's token, or the status of the response: 401, or 403 for another kind of caller.
func verified(request *http.Request, scope string) (*claims, int) {
	kind, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "bearer") {
		return nil, 401
	}
	tokensLock.RLock()
	found := tokens[token]
	tokensLock.RUnlock()
	if found == nil {
		var err error
		if found, err = checkSignature(token); err != nil {
			return nil, 401
		}
		tokensLock.Lock()
		if len(tokens) >= cachedTokens {
			tokens = map[string]*claims{}
		}
		tokens[token] = found
		tokensLock.Unlock()
	}
	if found.Exp <= time.Now().Unix() {
		return nil, 401
	}
	if found.Scope != scope {
		return nil, 403
	}
	return found, 200
}

// noteUse counts a request of a key, and stores its last use once a minute.
func noteUse(owner, key int64, lastUsed *int64, at int64) {
	countsLock.Lock()
	requests[[2]int64{owner, key}]++
	countsLock.Unlock()
	if lastUsed == nil || *lastUsed < at-minute {
		go func() {
			if _, err := pool.Exec(context.Background(), sql["used"], owner, key, at); err != nil {
				log.Print(err)
			}
		}()
	}
}

func fail(response http.ResponseWriter, err error) int {
	if errors.Is(err, pgx.ErrNoRows) {
		return 401
	}
	log.Print(err)
	return 503
}

func success(response http.ResponseWriter, parts ...string) int {
	size := len(`{"status":"ok","data":}`)
	for _, part := range parts {
		size += len(part)
	}
	response.Header().Set("Content-Type", "application/json")
	response.Header().Set("Content-Length", strconv.Itoa(size))
	io.WriteString(response, `{"status":"ok","data":`)
	for _, part := range parts {
		io.WriteString(response, part)
	}
	io.WriteString(response, "}")
	return 0
}

func readPosts(response http.ResponseWriter, request *http.Request) int {
	caller, status := verified(request, "service")
	if status != 200 {
		return status
	}
	query, size := request.URL.Query(), 50
	location := query.Get("locationId")
	if given := query.Get("pageSize"); given != "" {
		size, _ = strconv.Atoi(given)
	}
	if location == "" || size < 1 || size > 100 {
		return 400
	}
	if !strings.Contains(" "+strings.Join(caller.Permissions, " ")+" ", " business.read ") {
		return 403
	}
	at, owner := now(), ownerOf(caller.Sub)
	var key int64
	var lastUsed *int64
	var documents, next *string
	row := pool.QueryRow(request.Context(), sql["list"],
		owner, caller.Sub, caller.Jti, caller.Fam, caller.kid, caller.Epoch, at, location, size)
	if err := row.Scan(&key, &lastUsed, &status, &documents, &next); err != nil {
		return fail(response, err)
	}
	if status != 200 {
		return status
	}
	noteUse(owner, key, lastUsed, at)
	return success(response, `{"localPosts":[`, value(documents), `],"nextPageToken":"`, value(next), `"}`)
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func readStatus(response http.ResponseWriter, request *http.Request, clientID string) int {
	caller, status := verified(request, "user")
	if status != 200 {
		return status
	}
	owner, err := strconv.ParseInt(caller.Sub, 10, 64)
	if err != nil {
		return 401
	}
	at := now()
	var data connectionStatus
	var seen *int64
	var isHeld bool
	row := pool.QueryRow(request.Context(), sql["status"], owner, clientID, caller.Jti, caller.kid, caller.Epoch, at)
	if err := row.Scan(&seen, &data.Plugin, &data.WP, &data.PHP, &isHeld, &status); err != nil {
		return fail(response, err)
	}
	if status != 200 {
		return status
	}
	data.Status = "offline"
	hint := "never_connected"
	if seen != nil {
		text := iso(*seen)
		data.Seen = &text
		hint = "was_online"
		switch {
		case at-*seen <= 2*hour:
			data.Status, hint = "online", ""
		case at-*seen < day:
			data.Status = "idle"
		}
	}
	if isHeld {
		hint = "deactivated"
	}
	if hint == "was_online" {
		data.ReasonAt = data.Seen
	}
	if hint != "" {
		data.ReasonHint = &hint
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return fail(response, err)
	}
	return success(response, string(encoded))
}

func heartbeat(response http.ResponseWriter, request *http.Request) int {
	caller, status := verified(request, "service")
	if status != 200 {
		return status
	}
	one := &beat{done: make(chan error, 1)}
	if err := json.NewDecoder(request.Body).Decode(one); err != nil {
		return 400
	}
	for _, version := range []*string{one.Plugin, one.WP, one.PHP} {
		if len(value(version)) > 64 {
			return 400
		}
	}
	at, owner := now(), ownerOf(caller.Sub)
	var key int64
	var lastUsed *int64
	row := pool.QueryRow(request.Context(), sql["caller"],
		owner, caller.Sub, caller.Jti, caller.Fam, caller.kid, caller.Epoch, at)
	if err := row.Scan(&key, &lastUsed, &status); err != nil {
		return fail(response, err)
	}
	if status != 200 {
		return status
	}
	noteUse(owner, key, lastUsed, at)
	one.owner, one.key, one.at = owner, key, at
	beats <- one
	if err := <-one.done; err != nil {
		return fail(response, err)
	}
	return success(response, `{"received":true,"next_heartbeat_in":3600}`)
}

// writeBeats commits heartbeats. Those that arrive during a commit share the next one.
func writeBeats() {
	for first := range beats {
		batch := []*beat{first}
		for waiting := len(beats); waiting > 0; waiting-- {
			batch = append(batch, <-beats)
		}
		err := commit(batch)
		for _, one := range batch {
			one.done <- err
		}
	}
}

func commit(batch []*beat) error {
	ctx := context.Background()
	transaction, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer transaction.Rollback(ctx)
	latest, queue := map[[2]int64]int64{}, &pgx.Batch{}
	for _, one := range batch {
		queue.Queue(sql["beat"], one.owner, one.key, one.at, one.Plugin, one.WP, one.PHP)
		if key := [2]int64{one.owner, one.key}; latest[key] < one.at {
			latest[key] = one.at
		}
	}
	for key, at := range latest {
		queue.Queue(sql["extend"], key[0], key[1], at, monthOf(at))
		queue.Queue(sql["start"], key[0], key[1], at, monthOf(at))
	}
	if err := transaction.SendBatch(ctx, queue).Close(); err != nil {
		return err
	}
	return transaction.Commit(ctx)
}

func token(response http.ResponseWriter, request *http.Request) int {
	var body struct {
		GrantType    string `json:"grant_type"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		return 400
	}
	at, owner := now(), ownerOf(body.ClientID)
	var key, business, epoch int64
	var lastUsed, expires *int64
	var permissions, location, plan string
	var digests *string
	var status int
	row := pool.QueryRow(request.Context(), sql["credentials"], owner, body.ClientID, at)
	err := row.Scan(&key, &lastUsed, &permissions, &location, &business, &epoch, &expires, &plan, &digests, &status)
	if err != nil {
		return fail(response, err)
	}
	if status == 401 {
		return status
	}
	digest, matches := sha256.Sum256([]byte(body.ClientSecret)), 0
	presented := []byte(hex.EncodeToString(digest[:]))
	for _, stored := range strings.Fields(value(digests)) {
		matches |= subtle.ConstantTimeCompare(presented, []byte(stored))
	}
	if matches == 0 {
		return 401
	}
	if status != 200 {
		return status
	}
	host, _, _ := net.SplitHostPort(request.RemoteAddr)
	network := host[:strings.LastIndex(host, ".")+1] + "0/24"
	countsLock.Lock()
	grants[grantOf{owner, key, network, permissions}]++
	countsLock.Unlock()
	noteUse(owner, key, lastUsed, at)
	seconds, accessTTL, refreshTTL := at/1000, int64(accessSeconds), int64(refreshSeconds)
	if expires != nil && *expires/1000-seconds < accessTTL {
		accessTTL = *expires/1000 - seconds
	}
	if accessTTL < refreshTTL {
		refreshTTL = accessTTL
	}
	claims := issued{
		Iss: issuer, Aud: issuer, Iat: seconds, Exp: seconds + accessTTL, Sub: body.ClientID, ClientID: body.ClientID,
		Scope: "service", Permissions: strings.Fields(permissions), Location: location, BusinessID: business,
		Epoch: epoch, Fam: random(), AuthTime: seconds, Jti: random(),
	}
	access, err := sign("RS256", claims)
	if err != nil {
		return fail(response, err)
	}
	claims.Aud, claims.Exp, claims.Jti = issuer+"/api/v1/auth/token", seconds+refreshTTL, random()
	refresh, err := sign("HS256", claims)
	if err != nil {
		return fail(response, err)
	}
	encoded, err := json.Marshal(pair{"Bearer", "service", plan, access, accessTTL, claims.Permissions, refresh, refreshTTL})
	if err != nil {
		return fail(response, err)
	}
	return success(response, string(encoded))
}

func writeCounts() {
	countsLock.Lock()
	ofRequests, ofGrants := requests, grants
	requests, grants = map[[2]int64]int64{}, map[grantOf]int64{}
	countsLock.Unlock()
	ctx, at := context.Background(), now()
	today, queue := at-at%day, &pgx.Batch{}
	for key, times := range ofRequests {
		queue.Queue(sql["usage"], key[0], key[1], today, times)
	}
	for key, times := range ofGrants {
		details, _ := json.Marshal(map[string]any{"last_at": iso(at), "permissions": strings.Fields(key.permissions)})
		number := strconv.FormatInt(key.key, 10)
		once := "token.issued:" + number + ":" + strconv.FormatInt(today, 10) + ":" + key.network
		queue.Queue(sql["issued"], key.owner, at, monthOf(at), key.key, "key:"+number, key.network, string(details), once, times)
	}
	if queue.Len() == 0 {
		return
	}
	if err := pool.SendBatch(ctx, queue).Close(); err != nil {
		log.Print(err)
	}
}

func route(response http.ResponseWriter, request *http.Request) int {
	method, path := request.Method, request.URL.Path
	switch {
	case method == "GET" && path == "/api/v1/posts":
		return readPosts(response, request)
	case method == "POST" && path == "/api/v1/api-keys/heartbeat":
		return heartbeat(response, request)
	case method == "POST" && path == "/api/v1/auth/token":
		return token(response, request)
	case method == "GET" && strings.HasPrefix(path, "/api/v1/api-keys/") && strings.HasSuffix(path, "/status"):
		return readStatus(response, request, path[len("/api/v1/api-keys/"):len(path)-len("/status")])
	}
	return 404
}

func main() {
	if err := open(context.Background()); err != nil {
		log.Fatal(err)
	}
	go writeBeats()
	go func() {
		for range time.Tick(5 * time.Second) {
			writeCounts()
		}
	}()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		writeCounts()
		os.Exit(0)
	}()
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if status := route(response, request); status != 0 {
			http.Error(response, http.StatusText(status), status)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], handler))
}
