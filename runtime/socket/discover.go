package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// Found is an engine that listens in the well-known folder.
type Found struct {
	Address string
	Engine  event.Engine // Name "" if it does not answer, or only to those who know its token
}

// maxFound is how many sockets of the folder are looked at.
const maxFound = 64

// Discover finds the engines of this user that are alive, in order of their addresses. No folder means no engines.
func Discover() ([]Found, error) {
	candidates, err := sockets()
	if err != nil {
		return nil, err
	}
	all := make([]*Found, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = visit(a) })
	}
	wait.Wait()
	return present(all), nil
}

// sockets are those of the well-known folder, whether anybody listens or not.
func sockets() (out []address, err error) {
	entries, err := os.ReadDir(Folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && len(out) < maxFound {
			out = append(out, address{"unix", filepath.Join(Folder(), e.Name())})
		}
	}
	return out, nil
}

// present are those that are there.
func present[T any](all []*T) (out []T) {
	for _, p := range all {
		if p != nil {
			out = append(out, *p)
		}
	}
	return out
}

// visit asks who listens at an address; nil if nobody does.
func visit(a address) *Found {
	conn, err := net.DialTimeout(a.network, a.path, patience)
	if err != nil {
		return nil
	}
	defer conn.Close()
	f := &Found{Address: a.String()}
	if engine, err := introduction(conn); err == nil {
		f.Engine = engine
	}
	return f
}
