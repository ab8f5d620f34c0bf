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
)

// tracesPath is where exporters send traces to by the specification of OTLP.
const tracesPath = "/v1/traces"

// maxBusy bounds the exports that are taken apart at a time.
const maxBusy = 8

// The encodings of bodies, in which answers come as well.
const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// handler answers exporters.
func (r *Receiver) handler() http.Handler {
	wanted := sha256.Sum256([]byte(r.opt.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if err != nil || kind != protobufType && kind != jsonType {
			kind = ""
		}
		scheme, secret, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(secret))
		known := strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], wanted[:]) == 1
		switch {
		case req.Method == "PRI": // the beginning of HTTP/2
			r.refuse(w, req, kind, http.StatusHTTPVersionNotSupported, "gRPC is not spoken here: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf makes senders speak HTTP")
		case req.URL.Path != tracesPath:
			r.refuse(w, req, kind, http.StatusNotFound, "llmtop takes traces, at "+tracesPath+", and neither metrics nor logs")
		case r.opt.Token != "" && !known:
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

// take reads an export.
func (r *Receiver) take(w http.ResponseWriter, req *http.Request, kind string) {
	body := holding{all: &r.held}
	defer body.release()
	err := body.read(w, req)
	var b *batch
	if err == nil {
		r.busy <- struct{}{}
		defer func() { <-r.busy }()
		read := readProtobuf
		if kind == jsonType {
			read = readJSON
		}
		b, err = read(body.Bytes())
	}
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1")
		r.refuse(w, req, kind, http.StatusServiceUnavailable, err.Error())
		return
	case errors.Is(err, errTooLarge):
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

// accept answers with an ExportTraceServiceResponse, which tells of spans that were not taken.
func accept(w http.ResponseWriter, kind string, b *batch) {
	if kind == jsonType {
		answer := map[string]any{}
		if b.rejected > 0 {
			answer["partialSuccess"] = map[string]any{"rejectedSpans": strconv.Itoa(b.rejected), "errorMessage": b.why}
		}
		text, _ := json.Marshal(answer) // maps of strings
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

// codes are those of google.rpc.Status.
var codes = map[int]int{
	http.StatusBadRequest: 3, http.StatusUnauthorized: 16, http.StatusNotFound: 12, http.StatusMethodNotAllowed: 12,
	http.StatusRequestEntityTooLarge: 8, http.StatusUnsupportedMediaType: 3, http.StatusServiceUnavailable: 14,
}

// refuse counts a request that is not read, and says so.
func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, kind string, status int, why string) {
	host, _, _ := net.SplitHostPort(req.RemoteAddr)
	r.gather.refused(host, status, why)
	refuse(w, kind, status, why)
}

// refuse answers with a google.rpc.Status, in the encoding of the request where that has one.
func refuse(w http.ResponseWriter, kind string, status int, why string) {
	switch kind {
	case protobufType:
		body := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(codes[status]))
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), why)
		respond(w, kind, status, body)
	case jsonType:
		body, _ := json.Marshal(map[string]any{"code": codes[status], "message": why}) // of an int and a string
		respond(w, kind, status, body)
	default:
		respond(w, "text/plain; charset=utf-8", status, fmt.Appendln(nil, why))
	}
}

func respond(w http.ResponseWriter, kind string, status int, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone misses nothing
}
