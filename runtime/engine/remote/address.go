package remote

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/answers"
)

// API is an HTTP interface for generation.
type API string

// The interfaces. Auto chooses one for the server.
const (
	Auto       API = ""
	OpenAIChat API = "openai-chat" // POST /v1/chat/completions
	OpenAI     API = "openai"      // POST /v1/completions
	OllamaChat API = "ollama-chat" // POST /api/chat
	Ollama     API = "ollama"      // POST /api/generate
)

// APIs returns all interfaces except Auto.
func APIs() []API { return []API{OpenAIChat, OpenAI, OllamaChat, Ollama} }

// ParseAPI returns the interface of a name; "" is Auto.
func ParseAPI(name string) (API, error) {
	if a := API(name); a == Auto || slices.Contains(APIs(), a) {
		return a, nil
	}
	return Auto, fmt.Errorf("%q: must be openai-chat, openai, ollama-chat or ollama", name)
}

// path is the path of requests, below the server's address.
func (a API) path() string {
	return map[API]string{
		OpenAIChat: "/v1/chat/completions", OpenAI: "/v1/completions", OllamaChat: "/api/chat", Ollama: "/api/generate",
	}[a]
}

// dialect returns how answers are written.
func (a API) dialect() *answers.Dialect { return answers.Of(a.path()) }

// IsAddress reports whether a command-line argument is the address of a server.
func IsAddress(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}
