package clean

import (
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	for in, want := range map[string]string{
		`read "http://me:secret@h:80/v1?key=secret": no`:     `read "http://h:80/v1": no`,
		"open http://me:secret@127.0.0.1:9: no such file":    "open http://127.0.0.1:9: no such file",
		"Post \"https://h/v1?key=secret\": dial\nand again":  "Post \"https://h/v1\": dial\nand again",
		"at http://h:80/#secret, again":                      "at http://h:80/, again",
		"open me:secret@127.0.0.1:9: no":                     "open 127.0.0.1:9: no",
		"attach http:/me:secret@h/: no":                      "attach h/: no",
		"open 127.0.0.1:9/?k=secret: no":                     "open 127.0.0.1:9/: no",
		"prometheus+http://me:secret@h/p: no":                "prometheus+http://h/p: no",
		"http://me:secret/with@h: not a URL":                 "http://…: not a URL",
		"write http://HOST:PORT, unix:PATH or tcp:HOST:PORT": "write http://HOST:PORT, unix:PATH or tcp:HOST:PORT",
		"did you mean --to? image@sha256:12":                 "did you mean --to? image@sha256:12",
		"http://h/@cf/model:8b":                              "http://h/@cf/model:8b",
	} {
		if got := URLs(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"http://h:8000/v1", "http://u:p@h", "h", "http://[::1]:8000/metrics?x=1", "://", "http://a@b@c/d@e", "u:p@h", "http:/u:p@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		shown := URL(address)
		if strings.ContainsAny(shown, "?#") {
			t.Errorf("%q is shown as %q", address, shown)
		}
		if host, _, _ := strings.Cut(strings.TrimPrefix(shown, "http://"), "/"); strings.HasPrefix(address, "http://") && strings.Contains(host, "@") {
			t.Errorf("%q is shown as %q", address, shown)
		}
	})
}
