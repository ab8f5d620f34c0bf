package fetch

import (
	"fmt"
	"net/url"
	"strings"
)

// ParseAddress parses the address of a server: http://HOST:PORT or https://HOST/PATH. It removes a trailing /v1 or
// /metrics, which users often append. It rejects a user and password: addresses are shown and written to files, so they
// must not hold secrets.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address %q: not a URL", Strip(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("address %q: write http://HOST:PORT or https://HOST", Strip(address))
	case u.User != nil:
		return nil, fmt.Errorf("address %q: remove the user and password: pass a key with LLMTOP_API_KEY or --api-key-file", Strip(address))
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address %q: remove the query and the fragment", Strip(address))
	}
	for _, end := range []string{"/metrics", "/v1"} {
		u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), end)
	}
	u.RawPath = ""
	return u, nil
}

// Strip returns an address for display: without user, password, query and fragment. It hides the host if it could be
// part of a password.
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
	path, query, hasQuery := strings.Cut(path, "?")
	path, fragment, _ := strings.Cut(path, "#")
	if !isHost(host) || hasQuery && path == "" && strings.Contains(query, "@") || path == "" && strings.Contains(fragment, "@") {
		return scheme + "…"
	}
	return scheme + host + path
}

// isHost reports whether a text has the form of a host, with or without a port.
func isHost(text string) bool {
	name, port, ok := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		if name, port, ok = strings.Cut(text, "]"); ok {
			port, ok = strings.CutPrefix(port, ":")
		}
	}
	return !ok && port == "" && !strings.ContainsAny(name, ":") || ok && strings.Trim(port, "0123456789") == ""
}
