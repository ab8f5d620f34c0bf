package files

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/clean"
)

// APIKey holds the flags for the API key of servers.
type APIKey struct {
	File     string
	OverHTTP bool // the key may go to other machines over plain HTTP
}

// Bind adds the flags.
func (k *APIKey) Bind(flags *pflag.FlagSet, variables string) {
	flags.StringVar(&k.File, "api-key-file", "", "`FILE` with the API key of the servers (or "+variables+")")
	flags.BoolVar(&k.OverHTTP, "api-key-over-http", false, "send the API key to other machines without HTTPS (readable in transit)")
}

// Read returns the API key from the file, otherwise from $LLMTOP_API_KEY.
func (k *APIKey) Read() (string, error) {
	if k.File == "" {
		return strings.TrimSpace(os.Getenv("LLMTOP_API_KEY")), nil
	}
	raw, err := Read(k.File, maxSecret)
	if err != nil {
		return "", exit.Usagef("read API key %s: %w", k.File, err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" || strings.ContainsAny(key, "\r\n") {
		return "", exit.Usagef("read API key: %s must hold one line", k.File)
	}
	return key, nil
}

// Check refuses to send a key unencrypted over the network.
func (k *APIKey) Check(command, key string, addresses ...string) error {
	if key == "" || k.OverHTTP {
		return nil
	}
	for _, at := range addresses {
		if address.Unencrypted(at) {
			return exit.Usagef("%s %s: the API key would be sent unencrypted: use https://, or allow it with --api-key-over-http", command, clean.URL(at))
		}
	}
	return nil
}

// BindToken adds the flag for the file with the token.
func BindToken(set *pflag.FlagSet, file *string) {
	set.StringVar(file, "token-file", "", "`FILE` with the token for non-loopback addresses (or $LLMTOP_TOKEN)")
}

// Token returns the token in a file, otherwise $LLMTOP_TOKEN.
func Token(file string) (string, error) {
	if file == "" {
		return os.Getenv("LLMTOP_TOKEN"), nil
	}
	raw, err := Read(file, maxSecret)
	if err != nil {
		return "", exit.Usagef("read token %s: %w", file, err)
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", exit.Usagef("read token: %s is empty", file)
	}
	return secret, nil
}
