// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publicroots gives a program the root certificates of Mozilla, for where the system has none: our images have nothing
// but the program. The commands that have an image import it, and libraries never do, as a program can be given roots only once.
//
// What the system has goes first, in the places where Go looks for it (SSL_CERT_FILE, SSL_CERT_DIR, /etc/ssl): so an
// operator mounts others. GODEBUG=x509usefallbackroots=1 turns that round. A CA that is named for a connection, such as in a
// kubeconfig, is all that counts there.
//
// The roots are as new as the module that has them. They cost 126 KB, and are parsed at the start.
package publicroots

import _ "golang.org/x/crypto/x509roots/fallback" // sets the roots
