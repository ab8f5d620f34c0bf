// Package terminal puts terminals into raw mode, and restores them even if a signal kills the program.
package terminal

import (
	"context"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
)

// taken holds the terminals in use.
var taken = struct {
	mu      sync.Mutex
	closing bool // the program is about to end
	users   map[*user]struct{}
}{users: map[*user]struct{}{}}

// user is a screen or another reader of single keys.
type user struct {
	cook  func() // leaves raw mode
	out   io.Writer
	leave string
	done  chan struct{} // closed when the terminal is restored
}

// Take puts in, if it is a terminal, into raw mode; out understands escape sequences from then on. The returned
// function undoes that, and writes leave, which undoes what the caller has written. If the program is killed before,
// GiveBack does it.
func Take(in *os.File, out io.Writer, leave string) (restore func()) {
	u := &user{out: out, leave: leave, done: make(chan struct{})}
	taken.mu.Lock()
	if taken.closing {
		taken.mu.Unlock()
		select {} // block: nobody would restore this terminal
	}
	u.cook = makeRaw(in, out)
	taken.users[u] = struct{}{}
	taken.mu.Unlock()
	return func() {
		_, _ = io.WriteString(out, leave)
		u.cook()
		taken.mu.Lock()
		delete(taken.users, u)
		taken.mu.Unlock()
		close(u.done)
	}
}

// makeRaw changes the modes of the terminals and returns a function that restores them. The program ends or stops then:
// there is nowhere to report an error.
func makeRaw(in *os.File, out io.Writer) (cook func()) {
	undo := understandEscapes(out)
	state, err := term.MakeRaw(in.Fd())
	if err != nil { // no terminal
		return undo
	}
	return func() {
		_ = term.Restore(in.Fd(), state)
		undo()
	}
}

// GiveBack waits until all terminals are restored, and restores those that are not after patience itself. Then the
// program must end: Take blocks from now on.
func GiveBack(patience time.Duration) {
	taken.mu.Lock()
	taken.closing = true
	users := maps.Clone(taken.users)
	taken.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for u := range users {
		select {
		case <-u.done:
		case <-ctx.Done():
			u.restore()
		}
	}
}

// writeWithin bounds the write that restores a terminal: one stopped with ctrl+s accepts no bytes at all.
const writeWithin = 100 * time.Millisecond

func (u *user) restore() {
	u.cook()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(u.out, u.leave)
	}()
	select {
	case <-wrote:
	case <-time.After(writeWithin):
	}
}
