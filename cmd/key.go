package cmd

import (
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/runtime/engine/remote"
)

// serverKey holds the flags for the API key of servers.
type serverKey struct {
	file     string
	overHTTP bool // the key may go to other machines over plain HTTP
}

func (k *serverKey) bind(flags *pflag.FlagSet, variables string) {
	flags.StringVar(&k.file, "api-key-file", "", "`FILE` with the API key of the servers (or "+variables+")")
	flags.BoolVar(&k.overHTTP, "api-key-over-http", false, "send the API key to other machines without HTTPS (readable in transit)")
}

// read returns the API key from the file, otherwise from $LLMTOP_API_KEY.
func (k *serverKey) read() (string, error) {
	if k.file == "" {
		return strings.TrimSpace(os.Getenv("LLMTOP_API_KEY")), nil
	}
	raw, err := readFile(k.file, maxSecretBytes)
	if err != nil {
		return "", usagef("read API key %s: %w", k.file, err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", usagef("read API key: %s must hold one line", k.file)
	}
	return key, nil
}

// check refuses to send a key unencrypted over the network.
func (k *serverKey) check(command, key string, addresses ...string) error {
	if key == "" || k.overHTTP {
		return nil
	}
	for _, at := range addresses {
		if unencrypted(at) {
			return usagef("%s %s: the API key would be sent unencrypted: use https://, or allow it with --api-key-over-http", command, redactURL(at))
		}
	}
	return nil
}

// unencrypted reports whether traffic to a server can be read in transit: another machine, without HTTPS.
func unencrypted(at string) bool {
	u, err := url.Parse(strings.TrimPrefix(at, fleetScheme))
	return err == nil && u.Scheme == "http" && !remote.IsLocal(u.String())
}

// redactURL returns the scheme and host of a URL, without the parts that may be secret.
func redactURL(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the server"
	}
	return u.Scheme + "://" + u.Host
}
