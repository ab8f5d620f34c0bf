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

// Strip is an address without its user, password and query, to be shown.
func Strip(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	}
	host, path, slash := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	path, _, _ = strings.Cut(path, "?")
	if slash {
		host += "/" + path
	}
	if ok {
		return scheme + "://" + host
	}
	return host
}
