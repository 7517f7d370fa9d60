// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// MaxOriginName is the maximum length of the name of a policy or pattern. The names of its placements have a dash and eight characters more.
const MaxOriginName = validation.DNS1123SubdomainMaxLength - 9

// MaxAttempts is the maximum number of attempts in the status of a placement: for each service of a pattern, one that is given up and one that runs.
const MaxAttempts = 64

// separator separates the parts of the name of an EdgeService. If a part contains it, the name has a hash instead.
const separator = "--"

// ServiceName returns the name of the EdgeService with this url, version and arch. Each combination has one name, so that it exists once in a
// namespace: <url>--<version>--<arch> if that is a valid name, and otherwise a prefix of it and a hash of all three.
func ServiceName(url, version, arch string) string {
	plain := true
	for _, part := range []string{url, version, arch} {
		plain = plain && !strings.Contains(part, separator) && !strings.HasPrefix(part, "-") && !strings.HasSuffix(part, "-")
	}
	name := url + separator + version + separator + arch
	if plain && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	// A single separator instead of two, so that the name differs from every name without a hash.
	hash := namehash.NameHash(url, version, arch)
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, url+"-"+version+"-"+arch)
	for strings.Contains(readable, separator) {
		readable = strings.ReplaceAll(readable, separator, "-")
	}
	readable = readable[:min(len(readable), validation.DNS1123SubdomainMaxLength-len(separator)-len(hash))]
	return strings.Trim(strings.Trim(readable, "-")+separator+hash, "-")
}

// PlacementName returns the name of the placement of a policy or a pattern on a node.
func PlacementName(origin PlacementOrigin, node string) string {
	return origin.Name + "-" + namehash.NameHash(origin.Kind, origin.Name, node)
}

// PatternKey splits spec.pattern of a node into the namespace and the name. It returns false if the pattern does not have this form.
func PatternKey(pattern string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(pattern, "/")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}
