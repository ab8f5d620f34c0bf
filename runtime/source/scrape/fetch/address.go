package fetch

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// ParseAddress parses the address of a server: http://HOST:PORT or https://HOST/PATH. It removes a trailing /v1,
// /metrics or /engine_metrics, which users often append. It rejects a user and password: addresses are shown and written to
// files, so they must not hold secrets; keys says where they belong.
func ParseAddress(address, keys string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address %q: not a URL", clean.URL(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("address %q: write http://HOST:PORT or https://HOST", clean.URL(address))
	case u.User != nil:
		return nil, fmt.Errorf("address %q: remove the user and password: %s", clean.URL(address), keys)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address %q: remove the query and the fragment", clean.URL(address))
	}
	path := u.EscapedPath()
	for _, end := range []string{"/metrics", "/engine_metrics", "/v1"} {
		path = strings.TrimSuffix(strings.TrimRight(path, "/"), end)
	}
	u.RawPath = strings.TrimRight(path, "/")
	u.Path, err = url.PathUnescape(u.RawPath)
	return u, err
}
