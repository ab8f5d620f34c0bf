package fetch

import (
	"fmt"
	"net/url"
	"strings"
)

// ParseAddress reads the address of a server: http://HOST:PORT or https://HOST/PATH, without the /v1 and the /metrics that users are used to
// give. A user and a password in it are refused: secrets do not belong into an address, which is shown and written.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address %q: no URL", Strip(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("address %q: write http://HOST:PORT or https://HOST", Strip(address))
	case u.User != nil:
		return nil, fmt.Errorf("address %q: it must not hold a user or password: give the key as LLMTOP_API_KEY or in a file", Strip(address))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address %q: it must end with its path", Strip(address))
	}
	for _, end := range []string{"/metrics", "/v1"} {
		u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), end)
	}
	u.RawPath = ""
	return u, nil
}

// Strip is an address without its user, password and query, to be shown. Of one whose host cannot be told from a password nothing is shown.
func Strip(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case !ok:
		scheme, rest = "", address
	case strings.ContainsAny(scheme, "/?#@:"):
		return "…"
	default:
		scheme += "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	host = host[strings.LastIndexByte(host, '@')+1:]
	path, query, asks := strings.Cut(path, "?")
	path, fragment, _ := strings.Cut(path, "#")
	if !isHost(host) || asks && path == "" && strings.Contains(query, "@") || path == "" && strings.Contains(fragment, "@") {
		return scheme + "…"
	}
	return scheme + host + path
}

// isHost reports whether a text has the form of a host, with a port or without.
func isHost(text string) bool {
	name, port, ok := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		if name, port, ok = strings.Cut(text, "]"); ok {
			port, ok = strings.CutPrefix(port, ":")
		}
	}
	return !ok && port == "" && !strings.ContainsAny(name, ":") || ok && strings.Trim(port, "0123456789") == ""
}
