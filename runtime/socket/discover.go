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
	entries, err := os.ReadDir(Folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	var candidates []address
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && len(candidates) < maxFound {
			candidates = append(candidates, address{"unix", filepath.Join(Folder(), e.Name())})
		}
	}
	all := make([]*Found, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = visit(a) })
	}
	wait.Wait()
	var found []Found
	for _, f := range all {
		if f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
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
