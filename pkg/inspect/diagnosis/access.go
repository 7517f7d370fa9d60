// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// AccessMissing means that no rule allows the user what the question is about.
const AccessMissing ID = "AccessMissing"

// Review is the result of an access review by the front kube-apiserver.
type Review struct {
	Allowed bool
	Reason  string
}

// AccessFacts are the known facts about a user's permissions.
type AccessFacts struct {
	User   string
	Groups []string
	Verb   string
	Target Target
	Ways   []AccessWay
	// Reviews are the results of the front's reviews.
	Reviews map[rbac.Permission]Read[Review]
	Rules   RBACRules
}

// OfAccess returns what allows a user to do something, or what is missing.
func OfAccess(facts AccessFacts) Answer {
	facts.Groups = GroupsOf(facts.User, facts.Groups)
	what := facts.Verb + " " + facts.Target.String()
	if facts.Verb == verbDeliver {
		what = "deliver works to " + facts.Target.String()
	}
	may := facts.User + " may " + what
	var first Answer
	unsure := false
	for i := range facts.Ways {
		a := facts.way(&facts.Ways[i])
		if a.Finding == nil && !a.IsBlind() {
			a.Verdict = may
			if len(facts.Ways) > 1 {
				a.Verdict += ", " + facts.Ways[i].Name
			}
			return a
		}
		// A way that could not be checked completely may be one that is allowed.
		if i == 0 || a.IsBlind() && !unsure {
			unseen := first.Unseen
			first = a
			first.addHidden(unseen...)
		}
		unsure = unsure || a.IsBlind()
	}
	if unsure {
		return first.setVerdict(may)
	}
	first.Verdict = facts.User + " may not " + what
	if len(facts.Ways) > 1 {
		var others []string
		for i := range facts.Ways[1:] {
			others = append(others, "{"+facts.Ways[i+1].Name+": "+needs(&facts.Ways[i+1])+"}")
		}
		first.Finding.Cause += " The alternatives are not allowed either: " + shortened(others) + "."
	}
	if facts.Target.isDefault() {
		first.Finding.Cause += " A rule for the label of another set would be enough to move clusters between default and that set."
	}
	return first
}

func needs(w *AccessWay) string {
	names := make([]string, len(w.Needs))
	for i := range w.Needs {
		names[i] = w.Needs[i].Name
	}
	return strings.Join(names, ", and ")
}

// way checks the needs of one way.
func (f *AccessFacts) way(w *AccessWay) Answer {
	links := make([]link, len(w.Needs))
	for i := range w.Needs {
		links[i] = link{w.Needs[i].Name, func() outcome { return f.need(w, &w.Needs[i]) }}
	}
	return follow(links)
}

// need checks whether a permission is granted in one of its spellings. The front decides; the rules explain why.
func (f *AccessFacts) need(w *AccessWay, n *Need) outcome {
	var notAsked, notRead []string
	for _, p := range n.Any {
		review, asked := f.Reviews[p].Get()
		grants := slices.DeleteFunc(f.Rules.grants(p), func(g Grant) bool { return !isOne(g.Subject, f.User, f.Groups) })
		switch {
		case asked && review.Allowed && len(grants) > 0:
			return passed("by %s", grants[0])
		case asked && review.Allowed:
			return passed("%s", orReason(review.Reason)).without(f.Rules.hidden(p)...)
		case !asked && len(grants) > 0:
			return passed("by %s", grants[0]).without(f.Reviews[p].Why())
		case !asked:
			notAsked = append(notAsked, f.Reviews[p].Why())
			notRead = append(notRead, f.Rules.hidden(p)...)
		}
	}
	if len(notRead) > 0 {
		return unseen(notRead[0]).without(append(notAsked, notRead...)...)
	}
	return broken("no rule", f.missing(w, n)).without(notAsked...)
}

func orReason(reason string) string {
	if reason == "" {
		return "the front kube-apiserver allows it without naming the rule"
	}
	return reason
}

// missing returns a finding with the missing rule, how to create it, and who can.
func (f *AccessFacts) missing(w *AccessWay, n *Need) Finding {
	p := n.Any[0]
	found := Finding{ID: AccessMissing, Severity: Error, Object: subjectOf(f.User),
		Cause: fmt.Sprintf("No rule gives %s this right: %s.", f.User, p),
		Turn:  "a user who may write ClusterRoles and their bindings, and has the right"}
	if p.Namespace != "" {
		found.Turn = "a user who may write RoleBindings in the namespace " + p.Namespace + ", and has the right"
	}
	if who, ok := f.Rules.Holders(f.granter(p)).Get(); ok && len(who) > 0 {
		found.Turn += ": " + shortened(who)
	}
	flag, value := userFlag(f.User)
	if w.Role != "" && p.Namespace == "" {
		found.Fix = []string{ShellCommand("kubectl", "hub", "grant", w.Set, "--role", w.Role, flag, value)}
		return found
	}
	name := roleName(f.User, p)
	resource := p.Resource + "." + p.Group
	if p.Subresource != "" {
		resource += "/" + p.Subresource
	}
	words := []string{"create", "--verb=" + p.Verb, "--resource=" + resource}
	if p.Name != "" {
		words = append(words, "--resource-name="+p.Name)
	}
	kind, where := "clusterrole", []string(nil)
	if p.Namespace != "" {
		kind, where = "role", []string{"-n", p.Namespace}
	}
	found.Fix = []string{
		ShellCommand(slices.Concat([]string{"kubectl", words[0], kind, name}, words[1:], where)...),
		ShellCommand(slices.Concat([]string{"kubectl", "create", kind + "binding", name, "--" + kind + "=" + name, flag + "=" + value}, where)...),
	}
	return found
}

func (f *AccessFacts) granter(p rbac.Permission) rbac.Permission {
	g := rbac.Permission{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	if p.Namespace != "" {
		g.Resource, g.Namespace = "rolebindings", p.Namespace
	}
	return g
}

func subjectOf(user string) string {
	if strings.HasPrefix(user, "system:serviceaccount:") {
		return "serviceaccount/" + strings.TrimPrefix(user, "system:serviceaccount:")
	}
	return "user/" + user
}

func userFlag(user string) (flag, value string) {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		return "--serviceaccount", account
	}
	return "--user", user
}

// roleName returns a name for a role with one permission. Names of roles allow all characters except slashes and percent signs.
func roleName(user string, p rbac.Permission) string {
	name := strings.Join([]string{user, p.Verb, p.RuleResource(), p.Name}, ":")
	return strings.Trim(strings.Map(func(r rune) rune {
		if r == '/' || r == '%' || r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, name), ":")
}
