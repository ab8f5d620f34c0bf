package clean

import (
	"regexp"
	"strings"
)

// URL returns a URL or another address for display: without user, password, query and fragment, of which each may be a
// secret. It hides the host if it could be part of a password.
func URL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case !ok:
		scheme, rest = "", address
		if at := strings.LastIndexByte(rest, '@'); at > strings.IndexByte(rest, ':') {
			rest = rest[at+1:]
		}
	case strings.ContainsAny(scheme, "/?#@:"):
		return ellipsis
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
		return scheme + ellipsis
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

// secretWord matches a word with a user and password, a query or a fragment: what URL would shorten.
var secretWord = regexp.MustCompile(`\S*(://\S*[@?#]|:\S*@|\?\S*=)\S*`)

// URLs returns a text, such as an error, with its URLs as URL returns them. Other text is returned as it is.
func URLs(text string) string {
	return secretWord.ReplaceAllStringFunc(text, func(word string) string {
		address := strings.TrimRight(word, `"'`+"`"+`:;,.)`) // of the sentence
		return URL(address) + word[len(address):]
	})
}
