// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"slices"
	"strings"
)

// single are headers that decide something. With two of them, it would depend on which is read.
var single = []string{"Accept", "Authorization", "Content-Type", "Cookie", "Origin", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", keyHeader}

// checkRequest is about all requests: a site whose name leads to this machine (DNS rebinding) calls the server by that name.
func (s *Server) checkRequest(r *http.Request) *refusal {
	if refused := s.door.checkConnection(r); refused != nil {
		return refused
	}
	switch {
	case s.door.origin(r.Host) == "":
		return refuse(http.StatusForbidden, "this server has another name: %s", s.door.reopen())
	case !strings.HasPrefix(r.RequestURI, "/") || strings.Contains(r.RequestURI, "#") || len(r.RequestURI) > maxURI:
		return refuse(http.StatusBadRequest, "expected a path of at most %d characters", maxURI)
	case r.Header.Get("Upgrade") != "" || strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Connection"), ",")), "upgrade"):
		return refuse(http.StatusBadRequest, "this server has no other protocol than HTTP")
	case r.Method != http.MethodPost && (r.ContentLength != 0 || len(r.TransferEncoding) > 0):
		return refuse(http.StatusBadRequest, "%s has no body here", shownMethod(r.Method))
	}
	for _, name := range single {
		if len(r.Header.Values(name)) > 1 {
			return refuse(http.StatusBadRequest, "there is more than one header %s", name)
		}
	}
	return nil
}

// shownMethod is one that HTTP has.
func shownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}, method) {
		return method
	}
	return "the method"
}

// checkData is about what only scripts of the page ask for. Browsers say who asks; a program that does not is let in by the cookie, which
// browsers do not send for other sites.
func (s *Server) checkData(r *http.Request) *refusal {
	refused := refuse(http.StatusForbidden, "this is for the page of this server alone, and not for other pages")
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch {
	case r.Header.Values("Sec-Fetch-Site") != nil && site != "same-origin",
		r.Header.Values("Origin") != nil && origin != s.door.origin(r.Host):
		return refused
	case r.Method == http.MethodPost && site == "" && origin == "":
		return refused // a form of another site in a browser that does not say so
	case !slices.Contains([]string{"", "empty"}, r.Header.Get("Sec-Fetch-Dest")),
		!slices.Contains([]string{"", "cors", "same-origin"}, r.Header.Get("Sec-Fetch-Mode")):
		return refused // not a script's request: data is shown by the page, and not by the browser
	}
	return nil
}

// checkPage is about the files of the page, which have nothing secret in them. Other sites may lead to where the door says, and get
// nothing else of it: a browser follows the link of kubectl hub ui from a file.
func (s *Server) checkPage(r *http.Request, path string) *refusal {
	refused := refuse(http.StatusForbidden, "this is not for other pages: %s", s.door.reopen())
	if r.Header.Values("Origin") != nil && r.Header.Get("Origin") != s.door.origin(r.Host) {
		return refused
	}
	opens := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return nil
	case "none":
		if opens {
			return nil
		}
	case "":
		if r.Header.Values("Sec-Fetch-Site") == nil {
			return nil
		}
	default:
		if opens && s.door.leadsTo(path) {
			return nil
		}
	}
	return refused
}
