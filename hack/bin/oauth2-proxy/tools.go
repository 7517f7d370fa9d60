// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package oauth2proxy pins the oauth2-proxy that the tests run in front of hub-ui. It is a module of its own so that its dependencies are not
// ours.
package oauth2proxy

import _ "github.com/oauth2-proxy/oauth2-proxy/v7"
