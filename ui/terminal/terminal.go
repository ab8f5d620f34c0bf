// Package terminal tracks the terminals whose state this program has changed, and restores them even if a signal kills
// it.
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
	in    *os.File
	state *term.State // nil: in is not a terminal
	out   io.Writer
	leave string
	done  chan struct{} // closed when the user has restored the terminal
}

// Take stores the state of the terminal in, which the caller is about to change. The caller restores it and then calls
// the returned function. If the program is killed before, GiveBack writes leave to out to undo what the caller has
// written.
func Take(in *os.File, out io.Writer, leave string) (restored func()) {
	u := &user{in: in, out: out, leave: leave, done: make(chan struct{})}
	u.state, _ = term.GetState(in.Fd()) // an error means that in is not a terminal
	taken.mu.Lock()
	closing := taken.closing
	taken.users[u] = struct{}{}
	taken.mu.Unlock()
	if closing {
		select {} // block: nobody would restore this terminal
	}
	return func() {
		taken.mu.Lock()
		delete(taken.users, u)
		taken.mu.Unlock()
		close(u.done)
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
	if u.state != nil {
		_ = term.Restore(u.in.Fd(), u.state) // the program ends: there is nowhere to report the error
	}
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
