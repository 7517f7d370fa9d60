// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootdir gives a process a root directory of its own, like that of a container: what is mounted there, and nothing else. It needs Linux, and
// a process that was started in namespaces of its own (Own).
package rootdir

// Settings of hack/release/image for our programs: the path of each in its image, and the user and group that it runs as.
const (
	Program = "/usr/local/bin/component"
	User    = 65532
)

// Mount is a file or folder of this machine in a root directory.
type Mount struct {
	From, To string
	// Writable reports whether it can be written to.
	Writable bool
	// Device reports whether it is a device.
	Device bool
	// Recursive includes the mounts below it.
	Recursive bool
}

// Devices returns the devices that every container has.
func Devices() (all []Mount) {
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"} {
		all = append(all, Mount{From: device, To: device, Writable: true, Device: true})
	}
	return all
}
