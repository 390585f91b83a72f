// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IVotingToken {
    function getPastVotes(address account, uint256 blockNumber) external view returns (uint256);
    function getPastTotalSupply(uint256 blockNumber) external view returns (uint256);
}

/// @title CommunityGovernor
/// @notice Token holders decide on calls that the governor then makes.
contract CommunityGovernor {
    struct Proposal {
        address proposer;
        address target;
        uint256 value;
        bytes data;
        uint256 votingEndsAt;
        uint256 snapshotBlock;
        uint256 votesFor;
        uint256 votesAgainst;
        bool executed;
        bool cancelled;
    }

    uint256 public constant VOTING_PERIOD = 4 days;
    uint256 public constant EXECUTION_DELAY = 2 days;
    uint256 public constant EXECUTION_WINDOW = 14 days;
    uint256 public constant QUORUM_BPS = 1_000;
    uint256 public constant PROPOSAL_BPS = 50;

    IVotingToken public immutable token;
    Proposal[] private proposals;
    mapping(uint256 => mapping(address => bool)) public hasVoted;

    event Proposed(uint256 indexed id, address indexed proposer, address target, uint256 value);
    event Voted(uint256 indexed id, address indexed voter, bool support, uint256 weight);
    event Executed(uint256 indexed id);
    event Cancelled(uint256 indexed id);

    constructor(IVotingToken token_) {
        token = token_;
    }

    receive() external payable {}

    /// @notice Submits a call for decision; the proposer needs half a percent of the supply.
    function propose(address target, uint256 value, bytes calldata data) external returns (uint256 id) {
        uint256 snapshot = block.number - 1;
        uint256 weight = token.getPastVotes(msg.sender, snapshot);
        require(weight * 10_000 >= token.getPastTotalSupply(snapshot) * PROPOSAL_BPS, "below proposal threshold");
        id = proposals.length;
        Proposal storage p = proposals.push();
        p.proposer = msg.sender;
        p.target = target;
        p.value = value;
        p.data = data;
        p.snapshotBlock = snapshot;
        p.votingEndsAt = block.timestamp + VOTING_PERIOD;
        emit Proposed(id, msg.sender, target, value);
    }

    /// @notice Votes once on an open proposal.
    function castVote(uint256 id, bool support) external {
        Proposal storage p = proposals[id];
        require(block.timestamp < p.votingEndsAt && !p.cancelled, "voting closed");
        require(!hasVoted[id][msg.sender], "already voted");
        uint256 weight = token.getPastVotes(msg.sender, p.snapshotBlock);
        require(weight > 0, "no voting weight");
        hasVoted[id][msg.sender] = true;
        if (support) {
            p.votesFor += weight;
        } else {
            p.votesAgainst += weight;
        }
        emit Voted(id, msg.sender, support, weight);
    }

    /// @notice Withdraws a proposal; only its proposer may do so, and only while voting is open.
    function cancel(uint256 id) external {
        Proposal storage p = proposals[id];
        require(msg.sender == p.proposer, "not proposer");
        require(block.timestamp < p.votingEndsAt, "voting closed");
        p.cancelled = true;
        emit Cancelled(id);
    }

    /// @notice Makes the call of a passed proposal after the delay.
    function execute(uint256 id) external {
        Proposal storage p = proposals[id];
        uint256 readyAt = p.votingEndsAt + EXECUTION_DELAY;
        require(block.timestamp >= readyAt && block.timestamp < readyAt + EXECUTION_WINDOW, "not executable now");
        require(!p.executed && !p.cancelled, "closed proposal");
        require(_passed(p), "not passed");
        p.executed = true;
        emit Executed(id);
        (bool ok, ) = p.target.call{value: p.value}(p.data);
        require(ok, "call failed");
    }

    function proposalVotes(uint256 id) external view returns (uint256 votesFor, uint256 votesAgainst) {
        return (proposals[id].votesFor, proposals[id].votesAgainst);
    }

    function _passed(Proposal storage p) private view returns (bool) {
        uint256 quorum = (token.getPastTotalSupply(p.snapshotBlock) * QUORUM_BPS) / 10_000;
        return p.votesFor > p.votesAgainst && p.votesFor >= quorum;
    }
}
