package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// API is a way to ask a server for text.
type API string

// The ways. Auto finds out which one the server speaks.
const (
	Auto       API = ""
	OpenAIChat API = "openai-chat" // POST /v1/chat/completions
	OpenAI     API = "openai"      // POST /v1/completions
	OllamaChat API = "ollama-chat" // POST /api/chat
	Ollama     API = "ollama"      // POST /api/generate
)

// APIs are the ways by name, Auto left out.
func APIs() []API { return []API{OpenAIChat, OpenAI, OllamaChat, Ollama} }

// ParseAPI is the way of the given name; "" is Auto.
func ParseAPI(name string) (API, error) {
	if a := API(name); a == Auto || slices.Contains(APIs(), a) {
		return a, nil
	}
	return Auto, fmt.Errorf("%q: must be openai-chat, openai, ollama-chat or ollama", name)
}

// path is where requests are posted to, below the server's address.
func (a API) path() string {
	return map[API]string{
		OpenAIChat: "/v1/chat/completions", OpenAI: "/v1/completions", OllamaChat: "/api/chat", Ollama: "/api/generate",
	}[a]
}

// lines reports whether answers come as NDJSON and not as server-sent events.
func (a API) lines() bool { return a == Ollama || a == OllamaChat }

// IsAddress reports whether a word of the command line is the address of a server.
func IsAddress(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}

// base is the address that paths are appended to: without the /v1 that users are used to give, and without a slash at its end. Secrets do
// not belong into an address, which is shown and written.
func base(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read address: %q is no URL", fetch.Strip(address))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("read address: %q must begin with http://HOST or https://HOST", fetch.Strip(address))
	case u.User != nil:
		return nil, fmt.Errorf("read address: it must not hold a user or password: give the key as LLMTOP_API_KEY or in a file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("read address: %q must end with its path", fetch.Strip(address))
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1"), "/")
	u.RawPath = ""
	return u, nil
}
