package otlp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/llmtop/llmtop/runtime/loopback"
)

// tracesPath is the path for traces in the OTLP specification.
const tracesPath = "/v1/traces"

// maxBusy limits the number of exports parsed at once.
const maxBusy = 8

// Encodings of requests. Answers use the encoding of their request.
const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// handler returns the HTTP handler for exporters.
func (r *Receiver) handler() http.Handler {
	wanted := sha256.Sum256([]byte(r.opt.Token))
	guard := loopback.NewGuard(r.listener.Addr(), r.opt.Allow)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if err != nil || kind != protobufType && kind != jsonType {
			kind = ""
		}
		scheme, secret, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(secret))
		authorized := strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], wanted[:]) == 1
		refusal := guard.Refusal(req)
		switch {
		case refusal != "":
			r.refuse(w, req, kind, http.StatusForbidden, refusal)
		case req.Method == "PRI": // HTTP/2 preface
			r.refuse(w, req, kind, http.StatusHTTPVersionNotSupported, "gRPC is not supported: set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf")
		case req.URL.Path != tracesPath:
			r.refuse(w, req, kind, http.StatusNotFound, "llmtop accepts traces at "+tracesPath+", but no metrics or logs")
		case r.opt.Token != "" && !authorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			r.refuse(w, req, kind, http.StatusUnauthorized, "missing or wrong token")
		case req.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			r.refuse(w, req, kind, http.StatusMethodNotAllowed, "send traces by POST")
		case kind == "":
			r.refuse(w, req, kind, http.StatusUnsupportedMediaType, "send "+protobufType+" or "+jsonType)
		default:
			r.take(w, req, kind)
		}
	})
}

// take reads one export and answers it.
func (r *Receiver) take(w http.ResponseWriter, req *http.Request, kind string) {
	body := holding{all: &r.held}
	defer body.release()
	err := body.read(w, req)
	var b *batch
	if err == nil {
		r.busy <- struct{}{}
		defer func() { <-r.busy }()
		b, err = r.read(kind, body.Bytes())
	}
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1")
		r.refuse(w, req, kind, http.StatusServiceUnavailable, err.Error())
		return
	case errors.Is(err, errTooLarge), errors.Is(err, errObjects):
		r.refuse(w, req, kind, http.StatusRequestEntityTooLarge, err.Error())
		return
	case errors.Is(err, errEncoding):
		r.refuse(w, req, kind, http.StatusUnsupportedMediaType, err.Error())
		return
	case err != nil:
		r.refuse(w, req, kind, http.StatusBadRequest, err.Error())
		return
	}
	host, _, _ := net.SplitHostPort(req.RemoteAddr)
	r.gather.take(b, host, time.Now())
	accept(w, kind, b)
}

// read reads an export. It translates one JSON export at a time, because a hostile one takes up to 350 MB.
func (r *Receiver) read(kind string, body []byte) (*batch, error) {
	if kind == protobufType {
		return readProtobuf(body)
	}
	r.translating.Lock()
	defer r.translating.Unlock()
	return readJSON(body)
}

// accept answers with an ExportTraceServiceResponse, which reports rejected spans.
func accept(w http.ResponseWriter, kind string, b *batch) {
	if kind == jsonType {
		answer := map[string]any{}
		if b.rejected > 0 {
			answer["partialSuccess"] = map[string]any{"rejectedSpans": strconv.Itoa(b.rejected), "errorMessage": b.why}
		}
		text, _ := json.Marshal(answer) // a map of strings always encodes
		respond(w, kind, http.StatusOK, text)
		return
	}
	var answer []byte
	if b.rejected > 0 {
		var partial []byte
		partial = protowire.AppendVarint(protowire.AppendTag(partial, 1, protowire.VarintType), uint64(b.rejected))
		partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), b.why)
		answer = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
	}
	respond(w, kind, http.StatusOK, answer)
}

// codes maps HTTP statuses to codes of google.rpc.Status.
var codes = map[int]int{
	http.StatusBadRequest: 3, http.StatusUnauthorized: 16, http.StatusForbidden: 7, http.StatusNotFound: 12, http.StatusMethodNotAllowed: 12,
	http.StatusRequestEntityTooLarge: 8, http.StatusUnsupportedMediaType: 3, http.StatusServiceUnavailable: 14,
}

// refuse counts and answers a request that is not read.
func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, kind string, status int, why string) {
	host, _, _ := net.SplitHostPort(req.RemoteAddr)
	r.gather.refused(host, status, why)
	refuse(w, kind, status, why)
}

// refuse answers with a google.rpc.Status in the encoding of the request, or in plain text.
func refuse(w http.ResponseWriter, kind string, status int, why string) {
	switch kind {
	case protobufType:
		body := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(codes[status]))
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), why)
		respond(w, kind, status, body)
	case jsonType:
		body, _ := json.Marshal(map[string]any{"code": codes[status], "message": why}) // an int and a string always encode
		respond(w, kind, status, body)
	default:
		respond(w, "text/plain; charset=utf-8", status, fmt.Appendln(nil, why))
	}
}

func respond(w http.ResponseWriter, kind string, status int, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the sender may have disconnected
}
