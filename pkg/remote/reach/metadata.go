// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/http"
	"strings"

	"k8s.io/client-go/metadata"
)

// Metadata returns a client that reads and watches only the metadata of objects. client-go's own prefers protobuf over JSON, whatever its
// configuration says, and protobuf cannot be limited before it is decoded.
func (c *Connection) Metadata() (metadata.Interface, error) {
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataAsJSON{next} })
	return metadata.NewForConfig(config)
}

type metadataAsJSON struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (m metadataAsJSON) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	var accepted []string
	for _, form := range strings.Split(request.Header.Get("Accept"), ",") {
		if strings.HasPrefix(form, "application/json") {
			accepted = append(accepted, form)
		}
	}
	request.Header.Set("Accept", strings.Join(accepted, ","))
	return m.next.RoundTrip(request)
}
