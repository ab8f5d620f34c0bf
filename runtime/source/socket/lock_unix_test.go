//go:build unix

package socket

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHeldFolder: an engine that waits for a locked folder gives up when its context ends or after maxLockWait, and not
// before.
func TestHeldFolder(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("stopped by the test")
	ctx, end := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := Listen("unix:"+filepath.Join(dir, "e.sock"), Options{Context: ctx})
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(5 * lockEvery):
	}
	end(cause)
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("ended with %v", err)
	}
	go func() {
		s, err := Listen("unix:"+filepath.Join(dir, "e.sock"), Options{})
		if err == nil {
			err = s.Close()
		}
		ended <- err
	}()
	time.Sleep(3 * lockEvery)
	unlock()
	if err := <-ended; err != nil {
		t.Errorf("the folder was let go: %v", err)
	}
}

// TestFolderHeldForEver: the error has the reason and the folder.
func TestFolderHeldForEver(t *testing.T) { synctest.Test(t, testFolderHeldForEver) }

func testFolderHeldForEver(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	_, err = Listen("unix:"+filepath.Join(dir, "e.sock"), Options{})
	if !errors.Is(err, errHeld) || !strings.Contains(err.Error(), dir+": another program has locked it") {
		t.Errorf("ended with %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "e.sock")); err == nil {
		t.Error("there is a socket")
	}
}
