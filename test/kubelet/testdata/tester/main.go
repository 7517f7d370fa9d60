// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tester is the program of the tests' pods. It reports its environment, and executes commands.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "serve here")
	code := flag.Int("exit", -1, "exit with this code")
	write := flag.String("write", "", "FILE=TEXT, to append to a file before all else")
	stubborn := flag.Bool("stubborn", false, "do not end when asked to")
	flag.Parse()
	fmt.Println("arguments:", strings.Join(os.Args[1:], " "))
	if file, text, ok := strings.Cut(*write, "="); ok {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			fmt.Println("writing:", err)
			os.Exit(9)
		}
		_ = f.Close()
	}
	if *code >= 0 {
		os.Exit(*code)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		for range asked {
			fmt.Println("asked to end")
			if !*stubborn {
				os.Exit(0)
			}
		}
	}()
	serve(*address)
}

func serve(address string) {
	var unready, sick atomic.Bool
	for path, off := range map[string]*atomic.Bool{"/ready": &unready, "/live": &sick} {
		http.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if off.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		http.HandleFunc("POST "+path, func(_ http.ResponseWriter, r *http.Request) { off.Store(r.FormValue("off") == "true") })
	}
	http.HandleFunc("GET /me", func(w http.ResponseWriter, _ *http.Request) {
		groups, _ := os.Getgroups()
		host, _ := os.Hostname()
		_ = json.NewEncoder(w).Encode(map[string]any{"env": os.Environ(), "uid": os.Getuid(), "gid": os.Getgid(), "groups": groups, "host": host})
	})
	http.HandleFunc("GET /dial", func(w http.ResponseWriter, r *http.Request) {
		conn, err := net.Dial("tcp", r.FormValue("address"))
		if err != nil {
			_, _ = fmt.Fprint(w, err)
			return
		}
		defer conn.Close()
		said, err := io.ReadAll(conn)
		if err != nil {
			said = []byte(err.Error())
		}
		_, _ = w.Write(said)
	})
	http.HandleFunc("GET /file/{name...}", func(w http.ResponseWriter, r *http.Request) {
		name := "/" + r.PathValue("name")
		if entries, err := os.ReadDir(name); err == nil {
			for _, e := range entries {
				fmt.Fprintln(w, e.Name())
			}
			return
		}
		data, err := os.ReadFile(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	})
	http.HandleFunc("PUT /file/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if err := os.WriteFile("/"+r.PathValue("name"), []byte(r.FormValue("text")), 0o600); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	})
	fmt.Println(http.ListenAndServe(address, nil))
	os.Exit(1)
}
