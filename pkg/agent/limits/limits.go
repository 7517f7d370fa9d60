// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits limits the requests of the agent's clients.
package limits

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Requests are the limits for each client that is created from a configuration.
type Requests struct {
	// QPS is the maximum number of requests per second in the long run, and Burst the number that may be sent at once.
	QPS   float32
	Burst int
}

// Default returns the defaults of the flags. With the default of client-go, 5 per second, hundreds of works would wait for minutes, since the status
// of each is written.
func Default() Requests {
	return Requests{QPS: registration.DefaultAgentQPS, Burst: registration.DefaultAgentBurst}
}

// AddFlags adds two flags, whose names begin with a prefix. to describes the recipient and the purpose of the requests.
func (r *Requests) AddFlags(fs *pflag.FlagSet, prefix, to string) {
	fs.Float32Var(&r.QPS, prefix+"kube-api-qps", r.QPS, "The maximum number of requests per second that each client sends "+to+".")
	fs.IntVar(&r.Burst, prefix+"kube-api-burst", r.Burst, "The maximum number of requests that each client sends at once "+to+".")
}

// Validate returns all errors of the flags with this prefix.
func (r Requests) Validate(prefix string) []error {
	if r.QPS > 0 && r.Burst > 0 {
		return nil
	}
	return []error{fmt.Errorf("--%[1]skube-api-qps and --%[1]skube-api-burst must be above 0, not %[2]v and %[3]d", prefix, r.QPS, r.Burst)}
}

// In returns a copy of a configuration with these limits.
func (r Requests) In(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = r.QPS, r.Burst
	return config
}
