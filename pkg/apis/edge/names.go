// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// MaxOriginName is how long the name of a policy or pattern may be: the names of its placements are a dash and eight characters longer.
const MaxOriginName = validation.DNS1123SubdomainMaxLength - 9

// MaxAttempts is how many attempts the status of a placement may have: one that is given up and one that runs for each service of a pattern.
const MaxAttempts = 64

// separator stands between the parts of the name of an EdgeService. Parts that have it in them are not written out.
const separator = "--"

// ServiceName is the name of the EdgeService that has this url, version and arch. Each of them has one name in a namespace, so that it is
// there once: <url>--<version>--<arch> where that is a name of an object, else a beginning of it and a hash of all three.
func ServiceName(url, version, arch string) string {
	plain := true
	for _, part := range []string{url, version, arch} {
		plain = plain && !strings.Contains(part, separator) && !strings.HasPrefix(part, "-") && !strings.HasSuffix(part, "-")
	}
	name := url + separator + version + separator + arch
	if plain && len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	// One separator in place of two: no name without a hash is the same.
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

// PlacementName is the name of the placement of a policy or a pattern on a node.
func PlacementName(origin PlacementOrigin, node string) string {
	return origin.Name + "-" + namehash.NameHash(origin.Kind, origin.Name, node)
}

// PatternKey are the namespace and the name in spec.pattern of a node. It is false for anything else.
func PatternKey(pattern string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(pattern, "/")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}
