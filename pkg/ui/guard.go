// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"slices"
	"strings"
)

// single are headers that affect a decision. If a request has two of them, it depends on the reader which one counts.
var single = []string{"Accept", "Authorization", "Content-Type", "Cookie", "Origin", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", keyHeader}

// checkRequest checks all requests: a site whose name resolves to this machine (DNS rebinding) sends requests to the server with that name.
func checkRequest(d door, r *http.Request) *refusal {
	if refused := d.checkConnection(r); refused != nil {
		return refused
	}
	switch {
	case d.origin(r.Host) == "":
		return refuse(http.StatusForbidden, "this server has another name: %s", d.reopen())
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

// shownMethod returns a method that HTTP has.
func shownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}, method) {
		return method
	}
	return "the method"
}

// checkData checks requests that only scripts of the page send. Browsers send the origin of a request. A program that does not is authenticated by
// the cookie, which browsers do not send for other sites.
func checkData(d door, r *http.Request) *refusal {
	refused := refuse(http.StatusForbidden, "this is for the page of this server alone, and not for other pages")
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	switch {
	case r.Header.Values("Sec-Fetch-Site") != nil && site != "same-origin",
		r.Header.Values("Origin") != nil && origin != d.origin(r.Host):
		return refused
	case r.Method == http.MethodPost && site == "" && origin == "":
		return refused // a form of another site in a browser that does not send the origin
	case !slices.Contains([]string{"", "empty"}, r.Header.Get("Sec-Fetch-Dest")),
		!slices.Contains([]string{"", "cors", "same-origin"}, r.Header.Get("Sec-Fetch-Mode")):
		return refused // not a request of a script: only the page shows data, and not the browser
	}
	return nil
}

// checkPage checks requests for the files of the page, which contain no secrets. Other sites may link to the paths that the door allows, and get no
// other files: a browser follows the link of kubectl hub ui from a file.
func checkPage(d door, r *http.Request, path string) *refusal {
	refused := refuse(http.StatusForbidden, "this is not for other pages: %s", d.reopen())
	if r.Header.Values("Origin") != nil && r.Header.Get("Origin") != d.origin(r.Host) {
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
		if opens && d.leadsTo(path) {
			return nil
		}
	}
	return refused
}
