// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title AssemblyToken
/// @notice Token whose holders decide on grants of ether from the assembly's treasury.
contract AssemblyToken {
    struct Checkpoint {
        uint64 fromBlock;
        uint192 balance;
    }

    struct Grant {
        address payable recipient;
        uint256 amount;
        uint256 snapshotBlock;
        uint256 votingEndsAt;
        uint256 votesFor;
        uint256 votesAgainst;
        bool paid;
    }

    string public constant name = "Assembly Token";
    string public constant symbol = "ASM";
    uint8 public constant decimals = 18;
    uint256 public constant VOTING_PERIOD = 5 days;
    uint256 public constant PAYMENT_DELAY = 2 days;
    uint256 public constant QUORUM_BPS = 2_000;
    uint256 public constant SUBMIT_BPS = 100;

    uint256 public immutable totalSupply;
    mapping(address => Checkpoint[]) private checkpoints;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(uint256 => mapping(address => bool)) public hasVoted;
    Grant[] public grants;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);
    event GrantSubmitted(uint256 indexed id, address indexed recipient, uint256 amount);
    event Voted(uint256 indexed id, address indexed voter, bool support, uint256 weight);
    event GrantPaid(uint256 indexed id);

    constructor(uint192 supply) {
        totalSupply = supply;
        _write(msg.sender, supply);
        emit Transfer(address(0), msg.sender, supply);
    }

    receive() external payable {}

    function balanceOf(address account) public view returns (uint256) {
        uint256 count = checkpoints[account].length;
        return count == 0 ? 0 : checkpoints[account][count - 1].balance;
    }

    /// @notice Balance of an account as of a block.
    function balanceAt(address account, uint256 blockNumber) public view returns (uint256) {
        require(blockNumber <= block.number, "block not reached");
        Checkpoint[] storage list = checkpoints[account];
        uint256 low = 0;
        uint256 high = list.length;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (list[middle].fromBlock > blockNumber) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low == 0 ? 0 : list[low - 1].balance;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    /// @notice Submits a grant for decision; the submitter needs one percent of the supply.
    function submit(address payable recipient, uint256 amount) external returns (uint256 id) {
        uint256 snapshot = block.number;
        require(balanceAt(msg.sender, snapshot) * 10_000 >= totalSupply * SUBMIT_BPS, "below threshold");
        id = grants.length;
        grants.push(Grant(recipient, amount, snapshot, block.timestamp + VOTING_PERIOD, 0, 0, false));
        emit GrantSubmitted(id, recipient, amount);
    }

    /// @notice Votes once on a grant with the balance held at its snapshot.
    function vote(uint256 id, bool support) external {
        Grant storage grant = grants[id];
        require(block.timestamp < grant.votingEndsAt, "voting closed");
        require(!hasVoted[id][msg.sender], "already voted");
        uint256 weight = balanceAt(msg.sender, grant.snapshotBlock);
        require(weight > 0, "no weight");
        hasVoted[id][msg.sender] = true;
        if (support) {
            grant.votesFor += weight;
        } else {
            grant.votesAgainst += weight;
        }
        emit Voted(id, msg.sender, support, weight);
    }

    /// @notice Pays a grant that has passed, after the delay.
    function payGrant(uint256 id) external {
        Grant storage grant = grants[id];
        require(block.timestamp >= grant.votingEndsAt + PAYMENT_DELAY, "too early");
        require(!grant.paid, "already paid");
        require(grant.votesFor > grant.votesAgainst, "not passed");
        require(grant.votesFor * 10_000 >= totalSupply * QUORUM_BPS, "no quorum");
        grant.paid = true;
        emit GrantPaid(id);
        (bool sent, ) = grant.recipient.call{value: grant.amount}("");
        require(sent, "transfer failed");
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "zero address");
        _write(from, uint192(balanceOf(from) - amount));
        _write(to, uint192(balanceOf(to) + amount));
        emit Transfer(from, to, amount);
    }

    function _write(address account, uint192 balance) private {
        Checkpoint[] storage list = checkpoints[account];
        if (list.length > 0 && list[list.length - 1].fromBlock == block.number) {
            list[list.length - 1].balance = balance;
        } else {
            list.push(Checkpoint(uint64(block.number), balance));
        }
    }
}
