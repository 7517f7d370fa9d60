// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package position describes where an object of a derived resource is: by its name, by its key among all objects, and by its resource version among
// all changes. It also has the clock, which orders changes of the RBAC rules among those of the objects.
package position

import "strings"

// SplitName splits the name of a member. A cluster's name has no dot; a set's may have one.
func SplitName(name string) (clusterName, setName string, ok bool) {
	clusterName, setName, ok = strings.Cut(name, ".")
	return clusterName, setName, ok && Possible(clusterName) && Possible(setName)
}

// Possible reports whether an object may have this name, so that it can be a part of a key. Names of clusters and sets begin and end with a letter or
// a digit, and have no slash.
func Possible(name string) bool {
	edge := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	return name != "" && edge(name[0]) && edge(name[len(name)-1]) && !strings.Contains(name, "/")
}
