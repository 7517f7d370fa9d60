// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// door is a TLS port of a process of a hub.
type door struct {
	name, address string
	// api reports whether the port accepts a client without a certificate, and reports over HTTP which user it authenticated.
	api bool
}

// listening returns the doors of a hub, and of the clusters of its provider. Ports without TLS are known by their names.
func listening(t *testing.T, h *localhub.Instance) (doors []*door) {
	t.Helper()
	names := map[int]string{}
	numbers := func(file, prefix string, name func(string) string) {
		var ports map[string]any
		data, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			return
		}
		if err := json.Unmarshal(harness.Must(data, err)(t), &ports); err != nil {
			t.Fatal(err)
		}
		for key, port := range ports {
			if number, ok := port.(float64); ok {
				names[int(number)] = prefix + name(key)
			}
		}
	}
	numbers(filepath.Join(h.Dir(), "ports.json"), "", func(key string) string { return key })
	numbers(filepath.Join(h.Dir(), "cluster-provider", "etcd", "etcd.json"), "cluster-provider/etcd",
		func(key string) string { return map[string]string{"PeerPort": "/peer"}[key] })
	for _, file := range harness.Must(filepath.Glob(filepath.Join(h.Dir(), "cluster-provider", "clusters", "*", "cluster.json")))(t) {
		numbers(file, harness.Must(filepath.Rel(h.Dir(), filepath.Dir(file)))(t), func(string) string { return "" })
	}
	for port, program := range ports(t, h) {
		name := names[port]
		if name == "" && program == "hub-apiserver" {
			name = program + "/embedded"
		}
		d := &door{name: name, address: fmt.Sprintf("127.0.0.1:%d", port)}
		switch {
		case strings.HasSuffix(name, "/health") || strings.HasSuffix(name, "/metrics"):
			continue // these are plain HTTP
		case name == "":
			t.Errorf("%s listens on the port %d, of which nothing is known", program, port)
		}
		d.api = d.handshake(nil) == nil
		doors = append(doors, d)
	}
	return doors
}

// ports returns the ports of the hub's processes, with the names of their programs.
func ports(t *testing.T, h *localhub.Instance) map[int]string {
	t.Helper()
	sockets := map[string]int{} // inodes to ports
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			const listens = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listens {
				_, hex, _ := strings.Cut(f[1], ":")
				sockets["socket:["+f[9]+"]"] = int(harness.Must(strconv.ParseInt(hex, 16, 32))(t))
			}
		}
	}
	if len(sockets) == 0 {
		t.Skip("there is no /proc")
	}
	// A program in an image has a different file name.
	found, programs := map[int]string{}, map[int]string{}
	for name, pid := range h.PIDs() {
		programs[pid] = name
	}
	for _, file := range harness.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		line, err := os.ReadFile(file)
		if err != nil { // it has exited
			continue
		}
		pid := harness.Must(strconv.Atoi(filepath.Base(filepath.Dir(file))))(t)
		program := programs[pid]
		if program == "" && strings.Contains(string(line), filepath.Join(h.Dir(), "cluster-provider")+"/") {
			program, _, _ = strings.Cut(string(line), "\x00")
		}
		if program == "" {
			continue
		}
		fds, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "fd", "*"))
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && sockets[target] != 0 {
				found[sockets[target]] = filepath.Base(program)
			}
		}
	}
	return found
}

func (d *door) config(pair *tls.Certificate) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if pair == nil {
			return &tls.Certificate{}, nil
		}
		return pair, nil // even if the server does not name its CA
	}}
}

// handshake returns nil if the server accepts the certificate. In TLS 1.3, this is known after the first byte of its response.
func (d *door) handshake(pair *tls.Certificate) error {
	config := d.config(pair)
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := tls.Dial("tcp", d.address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(harness.Timeout)); err != nil {
		return err
	}
	hello := "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	}
	if _, err := conn.Write([]byte(hello)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

var forbiddenUser = regexp.MustCompile(`User "([^"]*)"`)

// enter returns the user that the server authenticates for a client that also sends the front's impersonation headers, or "" if the client is
// rejected.
func (d *door) enter(t *testing.T, pair *tls.Certificate) string {
	t.Helper()
	if !d.api {
		if d.handshake(pair) == nil {
			return "somebody"
		}
		return ""
	}
	request := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+d.address+"/doors", nil))(t)
	request.Header.Set("X-Remote-User", "intruder")
	transport := &http.Transport{TLSClientConfig: d.config(pair)}
	defer transport.CloseIdleConnections()
	response := harness.Must((&http.Client{Transport: transport, Timeout: harness.Timeout}).Do(request))(t)
	defer response.Body.Close()
	body := harness.Must(io.ReadAll(response.Body))(t)
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return ""
	case http.StatusNotFound: // a user who may get everything receives a 404
		return "system:masters"
	case http.StatusForbidden:
		var status metav1.Status
		if err := json.Unmarshal(body, &status); err == nil {
			if user := forbiddenUser.FindStringSubmatch(status.Message); user != nil && user[1] != "system:anonymous" {
				return user[1]
			}
			return ""
		}
	}
	t.Errorf("%s answers %d: %s", d.name, response.StatusCode, body)
	return ""
}
