// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"k8s.io/client-go/util/cert"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// The limits of the addresses of its cluster's API server that an agent reports. All of them are one flag, which systems limit to 128 KiB.
const (
	MaxAddresses = 64
	MaxAddress   = 2048
	MaxCABundle  = 64 << 10
	// MaxAddressesBytes is the limit for all of them, as FormatAddresses writes them.
	MaxAddressesBytes = 96 << 10
)

// CheckAddress returns an error if an address of a cluster's API server, which users of the hub see, is invalid.
func CheckAddress(c clusterv1.ClientConfig) error {
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "https" || u.Host == "" || len(c.URL) > MaxAddress {
		return fmt.Errorf("%.100q must be an https URL of at most %d characters", c.URL, MaxAddress)
	}
	if len(c.CABundle) == 0 {
		return nil
	}
	if _, err := cert.ParseCertsPEM(c.CABundle); err != nil || len(c.CABundle) > MaxCABundle {
		return fmt.Errorf("the caBundle of %q must be certificates in PEM, of at most %d bytes", c.URL, MaxCABundle)
	}
	return nil
}

// FormatAddresses formats addresses for ParseAddresses.
func FormatAddresses(all []clusterv1.ClientConfig) (string, error) {
	text, err := json.Marshal(all)
	if err == nil && len(text) > MaxAddressesBytes {
		err = fmt.Errorf("the addresses have %d bytes, and the limit is %d", len(text), MaxAddressesBytes)
	}
	return string(text), err
}

// ParseAddresses parses addresses: a list in JSON, whose items have a url and may have a caBundle, PEM in base64.
func ParseAddresses(text string) (all []clusterv1.ClientConfig, err error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("must be a list of addresses in JSON, [{\"url\": …, \"caBundle\": …}, …]: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one list of addresses in JSON, and has more behind it")
	}
	if len(all) > MaxAddresses {
		return nil, fmt.Errorf("has %d addresses, and the limit is %d", len(all), MaxAddresses)
	}
	for i, address := range all {
		if err := CheckAddress(address); err != nil {
			return nil, fmt.Errorf("must be a list of addresses that users of the hub can use, and number %d cannot be one: %w", i, err)
		}
	}
	return all, nil
}
