// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootdir gives a process a root directory of its own, as a container has one: what is mounted there, and nothing else. It needs
// Linux, and a process that was started in namespaces of its own (Own).
package rootdir

// What hack/image makes of our programs: where each is in its image, and as which user and group it runs.
const (
	Program = "/usr/local/bin/component"
	User    = 65532
)

// Mount is a file or folder of this machine in a root directory.
type Mount struct {
	From, To string
	// Writable is whether it can be written to.
	Writable bool
	// Device is whether it is a device.
	Device bool
	// Recursive takes with it what is mounted below it.
	Recursive bool
}

// Devices are those that every container has.
func Devices() (all []Mount) {
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"} {
		all = append(all, Mount{From: device, To: device, Writable: true, Device: true})
	}
	return all
}
