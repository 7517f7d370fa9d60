// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// proxySchemes are the schemes of proxies that client-go supports.
var proxySchemes = []string{"http", "https", "socks5"}

// CheckProxyURL checks a proxy-url, which may be empty. Unlike client-go's, its error does not contain the URL, which may have a password.
func CheckProxyURL(text string) error {
	if u, err := url.Parse(text); text == "" || err == nil && slices.Contains(proxySchemes, u.Scheme) && u.Host != "" {
		return nil
	}
	return fmt.Errorf("must be a URL with a host that begins with one of %s://", strings.Join(proxySchemes, "://, "))
}
