package cmd

import (
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/api"
)

// serverKey is what a command is told about the API key of servers.
type serverKey struct {
	file  string
	plain bool // it may go to other machines over plain http
}

func (k *serverKey) bind(flags *pflag.FlagSet, whose, or string) {
	flags.StringVar(&k.file, "api-key-file", "", whose+": file with "+or)
	flags.BoolVar(&k.plain, "api-key-over-http", false, whose+": send the API key also to other machines without https, for all to read on the way")
}

// read is the API key of the file, or else that of llmtop's environment.
func (k *serverKey) read() (string, error) {
	if k.file == "" {
		return strings.TrimSpace(os.Getenv("LLMTOP_API_KEY")), nil
	}
	raw, err := os.ReadFile(k.file)
	if err != nil {
		return "", usagef("read API key: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", usagef("read API key: %s must hold one line", k.file)
	}
	return key, nil
}

// check refuses to send a key over the network in the clear.
func (k *serverKey) check(command, key string, addresses ...string) error {
	if key == "" || k.plain {
		return nil
	}
	for _, at := range addresses {
		if inTheClear(at) {
			return usagef("%s %s: the API key would go over the network in the clear: write https://, or allow it with --api-key-over-http", command, shown(at))
		}
	}
	return nil
}

// inTheClear reports whether what is sent to a server can be read on the way: it is another machine's, and without https.
func inTheClear(at string) bool {
	u, err := url.Parse(strings.TrimPrefix(at, fleetScheme))
	return err == nil && u.Scheme == "http" && !api.IsLocal(u.String())
}

// shown is the address of a server without what may be a secret.
func shown(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the server"
	}
	return u.Scheme + "://" + u.Host
}
