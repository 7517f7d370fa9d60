// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits says how many requests a client of the agent may send.
package limits

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Requests bounds those of each client that is made of a configuration.
type Requests struct {
	// QPS is how many are sent in a second in the long run, Burst how many at once.
	QPS   float32
	Burst int
}

// Default is what holds where no flag says something else. With the default of client-go, 5 in a second, hundreds of works would wait for
// minutes: the status of each is written.
func Default() Requests {
	return Requests{QPS: registration.DefaultAgentQPS, Burst: registration.DefaultAgentBurst}
}

// AddFlags adds two flags, whose names begin with a prefix. to says whom the requests are sent to, and for what.
func (r *Requests) AddFlags(fs *pflag.FlagSet, prefix, to string) {
	fs.Float32Var(&r.QPS, prefix+"kube-api-qps", r.QPS, "Requests per second that each client may send "+to+".")
	fs.IntVar(&r.Burst, prefix+"kube-api-burst", r.Burst, "Requests that each client may send at once "+to+".")
}

// Validate returns every error of the flags with this prefix.
func (r Requests) Validate(prefix string) []error {
	if r.QPS > 0 && r.Burst > 0 {
		return nil
	}
	return []error{fmt.Errorf("--%[1]skube-api-qps and --%[1]skube-api-burst must be above 0, not %[2]v and %[3]d", prefix, r.QPS, r.Burst)}
}

// In is a configuration with these bounds.
func (r Requests) In(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = r.QPS, r.Burst
	return config
}
