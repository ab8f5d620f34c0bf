package socket

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// maxName is the longest name of an engine to wait for, in bytes.
const maxName = 64

// IsName reports whether a text can be the name of an engine: not an address, a path, a number, a duration (of a flag that
// lacks its =) or the name of a file that llmtop reads or writes.
func IsName(text string) bool {
	if _, err := time.ParseDuration(text); err == nil {
		return false
	}
	if _, err := netip.ParseAddr(text); err == nil || len(text) > maxName || text != strings.TrimSpace(text) {
		return false
	}
	switch filepath.Ext(text) {
	case suffix, ".gguf", ".llmtop", ".json", ".jsonl", ".gz":
		return false
	}
	return strings.ContainsFunc(text, unicode.IsLetter) && !strings.ContainsAny(text, `/\:=@`) && !strings.ContainsFunc(text, unicode.IsControl) &&
		!strings.HasPrefix(text, "-") && !strings.HasPrefix(text, ".")
}

// errAbsent means that no engine of the client's name has an event socket.
var errAbsent = errors.New("no engine of this name has an event socket yet")

// dial connects to the engine, or if it has ended to the newest one of its name.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	err := errAbsent
	if c.address.network != "" {
		var conn net.Conn
		if conn, err = dial(ctx, c.address); err == nil || !nobodyListens(err) {
			return conn, err
		}
	}
	next, found := c.successor(ctx)
	switch {
	case found != nil:
		return nil, found
	case next == (address{}):
		return nil, err
	}
	conn, err := dial(ctx, next)
	if err == nil {
		c.address, c.follow.remote.Address = next, next.String()
	}
	return conn, err
}

// name returns the name of the engine to follow, "" if there is none.
func (c *Client) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.name
}

// Awaits reports whether the client waits for an engine of a name.
func (c *Client) Awaits(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.conn == nil && c.link.name != "" && strings.EqualFold(c.link.name, name)
}

// successor returns the newest socket in the well-known folder whose engine has the client's name and that no other
// client follows; none if there is none. Each engine with another name is asked once.
func (c *Client) successor(ctx context.Context) (address, error) {
	name := c.name()
	if name == "" {
		return address{}, nil
	}
	all, err := sockets()
	if err != nil {
		return address{}, err
	}
	var others []os.FileInfo
	defer func() { c.others = others }()
	for _, a := range all {
		file := identify(a.path)
		if file == nil || a == c.address {
			continue
		}
		if slices.ContainsFunc(c.others, func(o os.FileInfo) bool {
			return os.SameFile(o, file) && o.Name() == file.Name() && o.ModTime().Equal(file.ModTime())
		}) {
			others = append(others, file)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, shortTimeout)
		f := look(ctx, a, false)
		cancel()
		switch {
		case f == nil, f.Engine.Name == "" && f.Refused == nil: // it has ended, does not listen yet, or is slow
		case !f.named(name):
			others = append(others, file)
		case c.Claim == nil || c.Claim(a.String()):
			return a, nil
		}
	}
	return address{}, nil
}

// named reports whether an engine has a name. One that refuses to introduce itself has that of its socket, NAME-PID.sock,
// in which emitters replace some characters.
func (f *Found) named(name string) bool {
	if f.Refused == nil {
		return strings.EqualFold(f.Engine.Name, name)
	}
	plain := func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '_'
	}
	file := filepath.Base(f.Address)
	own := file[:max(strings.LastIndexByte(file, '-'), 0)]
	return own != "" && strings.Map(plain, own) == strings.Map(plain, name[:min(len(name), len(own))])
}
