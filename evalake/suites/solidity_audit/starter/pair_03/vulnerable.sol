// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title FestivalToken
/// @notice Capped token used for purchases on a festival's grounds.
contract FestivalToken {
    string public constant name = "Festival Token";
    string public constant symbol = "FEST";
    uint8 public constant decimals = 18;

    uint256 public immutable cap;
    uint256 public totalSupply;
    address public owner;
    address public pendingOwner;
    bool public transfersFrozen;

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => bool) public isMinter;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);
    event MinterSet(address indexed account, bool allowed);
    event OwnershipTransferred(address indexed from, address indexed to);

    modifier onlyOwner() {
        require(msg.sender == owner, "not owner");
        _;
    }

    constructor(uint256 cap_) {
        owner = msg.sender;
        cap = cap_;
    }

    /// @notice Allows or forbids an account to mint.
    function setMinter(address account, bool allowed) external {
        isMinter[account] = allowed;
        emit MinterSet(account, allowed);
    }

    /// @notice Freezes or releases transfers between holders.
    function setTransfersFrozen(bool frozen) external onlyOwner {
        transfersFrozen = frozen;
    }

    /// @notice Creates tokens up to the cap.
    function mint(address to, uint256 amount) external {
        require(isMinter[msg.sender], "not minter");
        require(to != address(0), "zero address");
        require(totalSupply + amount <= cap, "cap reached");
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    /// @notice Destroys tokens of the caller.
    function burn(uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        totalSupply -= amount;
        emit Transfer(msg.sender, address(0), amount);
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

    /// @notice Offers ownership to another account, which has to accept it.
    function offerOwnership(address to) external onlyOwner {
        pendingOwner = to;
    }

    function acceptOwnership() external {
        require(msg.sender == pendingOwner, "not offered");
        emit OwnershipTransferred(owner, msg.sender);
        owner = msg.sender;
        delete pendingOwner;
    }

    function _move(address from, address to, uint256 amount) private {
        require(!transfersFrozen, "frozen");
        require(to != address(0), "zero address");
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}
