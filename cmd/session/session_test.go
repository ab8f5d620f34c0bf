package session

import (
	"errors"
	"strings"
	"testing"
)

func TestGuarded(t *testing.T) {
	broken := errors.New("broken")
	if err := Guarded("do", func() error { return broken })(); err != broken {
		t.Errorf("error of the function became %v", err)
	}
	err := Guarded("sample host", func() error { panic("index out of range") })()
	if err == nil || !strings.HasPrefix(err.Error(), "sample host: panic: index out of range\n") || !strings.Contains(err.Error(), "session_test.go") {
		t.Errorf("panic became %v, want an error with the stack", err)
	}
}
