// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package outer

import (
	"net/http"
	"strings"

	"k8s.io/client-go/metadata"
)

// maxVersion is how long a resource version may be. Those of Kubernetes have 20 digits at most.
const maxVersion = 256

// IsVersion says whether what a cluster calls a resource version is short enough to be kept while a watch goes on.
func IsVersion(version string) bool { return len(version) <= maxVersion }

// Metadata is a client that reads and watches the metadata of objects alone. client-go's own asks for protobuf before JSON, whatever
// its configuration says, and what comes as protobuf cannot be bounded before it is decoded.
func (c *Cluster) Metadata() (metadata.Interface, error) {
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
