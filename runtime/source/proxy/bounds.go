package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// answerLocally answers requests that the proxy must not forward: too many headers, CONNECT tunnels, and requests
// about the proxy itself ("*"). It returns false for all others. It removes an offer to upgrade to unencrypted HTTP/2
// (h2c), since the proxy cannot measure what follows such an upgrade.
func answerLocally(w http.ResponseWriter, r *http.Request) bool {
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	switch {
	case lines > maxHeaders:
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestHeaderFieldsTooLarge, "invalid_request_error", fmt.Sprintf("the request has more than %d headers", maxHeaders))
	case r.Method == http.MethodConnect:
		w.Header().Set("Connection", "close")
		fail(w, http.StatusMethodNotAllowed, "invalid_request_error", "it passes requests to one server and makes no tunnels (CONNECT)")
	case r.RequestURI == "*" && r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case r.RequestURI == "*":
		fail(w, http.StatusBadRequest, "invalid_request_error", "only OPTIONS may ask for *")
	default:
		if strings.EqualFold(r.Header.Get("Upgrade"), "h2c") {
			r.Header.Del("Upgrade")
			r.Header.Del("HTTP2-Settings")
		}
		return false
	}
	return true
}

var (
	// errClientBody means that a request body violates HTTP.
	errClientBody = errors.New("the client sent a malformed body")
	// errClientGone means that the client disconnected before the end of its request body.
	errClientGone = errors.New("the client closed the connection before the end of its body")
	// errSlowHeader means that the server began to answer but did not finish its headers in time.
	errSlowHeader = fmt.Errorf("the server began its answer and did not finish its headers within %v", headerWithin)
)

// blame returns errClientGone or errClientBody for an error of reading a client's body.
func blame(err error) error {
	if op := (*net.OpError)(nil); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.As(err, &op) {
		return errClientGone
	}
	return errClientBody // without err, which quotes the body
}

// withinHeaders sends a request and limits the time from the first byte of the answer's headers to their end. Before
// the first byte the server may take as long as it needs. After an interim answer (1xx) the time limit is off, because
// the start of the next headers is not visible; the size limit always holds.
func (v *versions) withinHeaders(pass http.RoundTripper, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // ends with the client's request
	var (
		mu    sync.Mutex // guards the fields below
		timer *time.Timer
		over  bool
	)
	stop := func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		if timer != nil {
			timer.Stop()
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				timer = time.AfterFunc(v.headers, func() { cancel(errSlowHeader) })
			}
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			stop()
			return nil
		},
	})
	res, err := pass.RoundTrip(r.WithContext(ctx))
	stop()
	if err != nil && errors.Is(context.Cause(ctx), errSlowHeader) {
		err = errSlowHeader
	}
	return res, err
}
