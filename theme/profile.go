package theme

import (
	"io"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// Profile is the colour support of the terminal.
type Profile uint8

// The profiles, fewest colours first, in the order of the terminal library.
const (
	NoColour Profile = iota
	Colours16
	Colours256
	TrueColour
	NumProfiles
)

// String returns the profile's name for golden files and messages.
func (p Profile) String() string { return [...]string{"none", "16", "256", "truecolor"}[p] }

// Detect determines the profile from the output and the environment (NO_COLOR, CLICOLOR, COLORTERM, TERM and others).
func Detect(out io.Writer, env []string) Profile {
	return Profile(max(colorprofile.Detect(out, env), colorprofile.ASCII) - colorprofile.ASCII)
}

// Terminal returns the profile as the terminal library names it.
func (p Profile) Terminal() colorprofile.Profile { return colorprofile.ASCII + colorprofile.Profile(p) }

// PlainFont reports whether to use ASCII only: the locale is C, POSIX or names a character set other than UTF-8, or the
// terminal is a bare console. Without a locale (containers, Windows) it returns false.
func PlainFont(env []string) bool {
	get := func(name string) string {
		for i := len(env) - 1; i >= 0; i-- {
			if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
				return v
			}
		}
		return ""
	}
	if t := get("TERM"); t == "dumb" || t == "linux" || t == "vt100" || t == "vt220" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(get(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false
}
